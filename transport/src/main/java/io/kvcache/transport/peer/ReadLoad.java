package io.kvcache.transport.peer;

import java.util.concurrent.atomic.AtomicLong;

/// What this process reads at one server.
///
/// **Threads.** Any.
final class ReadLoad {

    private final AtomicLong underWay = new AtomicLong();
    private final DecayingSum recent = new DecayingSum();

    /// Begins to read up to so many bytes.
    void begin(long bytes) {
        underWay.addAndGet(bytes);
    }

    /// Ends what was begun.
    ///
    /// @param wanted bytes, as at the begin
    /// @param found bytes that came
    void end(long wanted, long found, long nowNanos) {
        underWay.addAndGet(-wanted);
        recent.add(found, nowNanos);
    }

    /// Returns whether there are fewer bytes under way than at another server; if these are equal, whether fewer
    /// bytes were read lately.
    boolean isBelow(ReadLoad other, long nowNanos) {
        long mine = underWay.get();
        long others = other.underWay.get();
        return mine == others ? recent.value(nowNanos) < other.recent.value(nowNanos) : mine < others;
    }
}
