package io.kvcache.transport.shm;

import java.util.concurrent.atomic.LongAdder;

/// Counts what was read without a message. Any thread.
public final class OneSidedCounters {

    final LongAdder copied = new LongAdder();
    final LongAdder missed = new LongAdder();
    final LongAdder torn = new LongAdder();
    private final LongAdder reported = new LongAdder();

    /// Blocks copied whole.
    public long copied() {
        return copied.sum();
    }

    /// Blocks asked for that were not copied, for whatever reason.
    public long missed() {
        return missed.sum();
    }

    /// Copies thrown away, as their block went while it was copied; each is a miss too.
    public long torn() {
        return torn.sum();
    }

    /// Reads that the server was told of, for its policy.
    public long reported() {
        return reported.sum();
    }

    /// The server was told of so many reads.
    public void addReported(long reads) {
        reported.add(reads);
    }
}
