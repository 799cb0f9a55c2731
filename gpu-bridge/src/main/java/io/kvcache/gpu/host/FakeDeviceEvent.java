package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceEvent;

/// A count of how often it was recorded, and of how often that was reached.
final class FakeDeviceEvent implements DeviceEvent {

    private final FakeDeviceDriver driver;
    private final FakeDeviceState fakeDeviceState;
    private volatile long recorded;
    private volatile long reached;
    private boolean closed;

    FakeDeviceEvent(FakeDeviceDriver driver, FakeDeviceState fakeDeviceState) {
        this.driver = driver;
        this.fakeDeviceState = fakeDeviceState;
    }

    /// Counts one more mark; the driver's thread.
    long addMark() {
        requireOpen();
        long number = recorded + 1;
        recorded = number;
        return number;
    }

    long markCount() {
        requireOpen();
        return recorded;
    }

    /// A stream got to a mark; only the last one counts, and it may be in another stream than those
    /// before.
    void markReached(long number) {
        synchronized (this) {
            reached = Math.max(reached, number);
        }
        fakeDeviceState.signalAll();
    }

    boolean reached(long number) {
        return reached >= number;
    }

    @Override
    public boolean isReached() {
        driver.enter();
        requireOpen();
        return reached(recorded);
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the event is closed");
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        driver.forget(this);
    }
}
