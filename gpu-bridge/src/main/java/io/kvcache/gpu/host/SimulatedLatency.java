package io.kvcache.gpu.host;

import java.util.concurrent.locks.LockSupport;

/// How fast a pretended device is.
///
/// **Threads.** Every stream's.
@FunctionalInterface
public interface SimulatedLatency {

    /// As fast as the CPU copies.
    SimulatedLatency FULL = () -> {};

    /// Returns when the next piece of work may begin, or when the thread was interrupted.
    void delayTask();

    /// Work begins so long after it could have, which makes it really late.
    static SimulatedLatency fixedDelay(long nanos) {
        return () -> LockSupport.parkNanos(nanos);
    }
}
