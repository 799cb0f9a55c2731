package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceUnderTest;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// A pretended device that can be held.
public final class BlockableDevice implements DeviceUnderTest, Runnable {

    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final long bytes;
    private final long delayNanos;
    private volatile boolean held;

    public BlockableDevice(long bytes, long delayNanos) {
        this.bytes = bytes;
        this.delayNanos = delayNanos;
    }

    @Override
    public void run() {
        if (delayNanos > 0) {
            LockSupport.parkNanos(delayNanos);
        }
        while (held && !Thread.currentThread().isInterrupted()) {
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    @Override
    public DeviceDriver open() {
        return FakeDeviceDriver.open(bytes, this);
    }

    @Override
    public boolean canHold() {
        return true;
    }

    @Override
    public void hold() {
        held = true;
    }

    @Override
    public void release() {
        held = false;
    }

    @Override
    public String left() {
        return "";
    }
}
