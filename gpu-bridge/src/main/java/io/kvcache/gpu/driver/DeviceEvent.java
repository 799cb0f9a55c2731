package io.kvcache.gpu.driver;

import java.util.concurrent.locks.LockSupport;

/// A mark in a stream: reached once all is done that was given to the stream before.
///
/// **Threads.** The driver's.
public interface DeviceEvent extends AutoCloseable {

    /// The pause between two looks: a fifth of what a block of 2 MiB takes on the way to a device.
    long POLL_NANOS = 10_000;

    /// Returns whether the stream has finished all work that it received before this event was last recorded. True
    /// for an event that was never recorded.
    ///
    /// @throws DeviceException when something that was given to any stream failed
    boolean isReached();

    /// Waits until it is reached, at most so long.
    ///
    /// @return whether it is
    /// @throws DeviceException as [#isReached] does
    default boolean await(long timeoutNanos) {
        long since = System.nanoTime();
        while (!isReached()) {
            if (System.nanoTime() - since >= timeoutNanos) {
                return false;
            }
            LockSupport.parkNanos(this, POLL_NANOS);
        }
        return true;
    }

    /// Gives it back. Streams that wait for it go on doing so until it is reached.
    ///
    /// A second close does nothing.
    @Override
    void close();
}
