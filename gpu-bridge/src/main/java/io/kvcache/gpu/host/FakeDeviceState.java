package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// What the streams of one pretended device have in common: its pace, the first thing that went wrong,
/// and waiting.
///
/// **Threads.** Any.
final class FakeDeviceState {

    private final Object changed = new Object();
    private final SimulatedLatency simulatedLatency;
    private volatile @Nullable DeviceException failure;
    private volatile boolean closing;

    FakeDeviceState(SimulatedLatency simulatedLatency) {
        this.simulatedLatency = simulatedLatency;
    }

    void delayTask() {
        simulatedLatency.delayTask();
    }

    /// Something failed: nothing is done any more.
    void fail(DeviceException cause) {
        if (failure == null) {
            failure = cause;
        }
        signalAll();
    }

    /// The device is being closed: nobody waits any more.
    void close() {
        closing = true;
        signalAll();
    }

    boolean hasFailed() {
        return failure != null;
    }

    boolean isStopped() {
        return closing || failure != null;
    }

    /// @throws DeviceException when something failed
    void requireHealthy() {
        DeviceException cause = failure;
        if (cause != null) {
            throw new DeviceException(cause.error(), "after a failure", String.valueOf(cause.getMessage()));
        }
    }

    /// Wakes those who wait.
    void signalAll() {
        synchronized (changed) {
            changed.notifyAll();
        }
    }

    /// Waits until something is so, or nothing is done any more.
    void awaitCondition(BooleanSupplier condition) throws InterruptedException {
        synchronized (changed) {
            while (!condition.getAsBoolean() && !isStopped()) {
                changed.wait();
            }
        }
    }
}
