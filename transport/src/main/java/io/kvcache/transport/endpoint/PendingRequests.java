package io.kvcache.transport.endpoint;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/// The requests of one session that wait for something: so many at a time, and for no longer than the
/// session lasts. Its end interrupts them, which ends a wait for room, for a flush or for anything else
/// that takes interrupts.
///
/// **Threads.** Any.
final class PendingRequests {

    private final AtomicInteger count = new AtomicInteger();
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    /// One more waits, until [#end], unless as many do already.
    boolean tryBegin(int most) {
        if (count.incrementAndGet() <= most) {
            return true;
        }
        count.decrementAndGet();
        return false;
    }

    /// One less.
    void end() {
        count.decrementAndGet();
    }

    /// Waits by this thread, unless the session is over.
    void run(Runnable work) {
        Thread self = Thread.currentThread();
        threads.add(self);
        try {
            if (!closed) {
                work.run();
            }
        } finally {
            threads.remove(self);
        }
    }

    /// The session is over.
    void close() {
        closed = true;
        threads.forEach(Thread::interrupt);
    }
}
