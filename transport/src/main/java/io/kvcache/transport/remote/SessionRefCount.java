package io.kvcache.transport.remote;

import java.util.concurrent.atomic.AtomicInteger;

/// Who uses a session: calls that go on, and tables, views and writers that are open. One that is
/// not wanted any more is closed when nobody does.
///
/// **Threads.** Any; one asks for the end.
final class SessionRefCount {

    private final AtomicInteger count = new AtomicInteger();
    private volatile boolean ended;

    /// A call begins, which [leaves][#leave]; answers false when the session has ended for new
    /// ones.
    boolean enter() {
        // Counted first and looked at then, as #end does it the other way round: one of them sees the other.
        count.incrementAndGet();
        if (ended) {
            count.decrementAndGet();
            return false;
        }
        return true;
    }

    /// Something that a call has opened stays behind it, and [leaves][#leave] by itself.
    void add() {
        count.incrementAndGet();
    }

    void leave() {
        count.decrementAndGet();
    }

    /// Ends it for new calls if there is nobody; answers whether it has.
    boolean endIfUnused() {
        ended = true;
        ended = count.get() == 0;
        return ended;
    }
}
