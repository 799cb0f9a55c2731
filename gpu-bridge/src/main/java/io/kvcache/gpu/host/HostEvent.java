package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceEvent;

/// A count of how often it was recorded, and of how often that was reached.
final class HostEvent implements DeviceEvent {

    private final HostDriver driver;
    private final Shared shared;
    private volatile long recorded;
    private volatile long reached;
    private boolean closed;

    HostEvent(HostDriver driver, Shared shared) {
        this.driver = driver;
        this.shared = shared;
    }

    /// Counts one more mark; the driver's thread.
    long mark() {
        requireOpen();
        long number = recorded + 1;
        recorded = number;
        return number;
    }

    long marks() {
        requireOpen();
        return recorded;
    }

    /// A stream got to a mark; only the last one counts, and it may be in another stream than those
    /// before.
    void reach(long number) {
        synchronized (this) {
            reached = Math.max(reached, number);
        }
        shared.announce();
    }

    boolean reached(long number) {
        return reached >= number;
    }

    @Override
    public boolean reached() {
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
        requireOpen();
        closed = true;
        driver.gone(this);
    }
}
