package io.kvcache.transport.endpoint;

import java.util.concurrent.atomic.AtomicLong;

/// A part of the heap that all connections of an endpoint share.
///
/// **Threads.** Any.
final class HeapShare {

    private final long most;
    private final AtomicLong taken = new AtomicLong();

    /// @param most bytes
    HeapShare(long most) {
        this.most = most;
    }

    /// Takes so many bytes, to be [given back][#give], unless that would be too many.
    boolean take(long bytes) {
        long before = taken.get();
        while (bytes <= most - before) {
            if (taken.compareAndSet(before, before + bytes)) {
                return true;
            }
            before = taken.get();
        }
        return false;
    }

    /// Gives back what was taken.
    void give(long bytes) {
        taken.addAndGet(-bytes);
    }

    /// Bytes that are taken.
    long taken() {
        return taken.get();
    }

    /// Bytes that may be.
    long most() {
        return most;
    }
}
