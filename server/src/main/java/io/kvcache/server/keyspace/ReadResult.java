package io.kvcache.server.keyspace;

import org.jspecify.annotations.Nullable;

/// What came of a read.
///
/// **Ownership.** Whoever is given it closes the value, if there is one.
///
/// @param value held in place, or null
/// @param outcome why there is a value, or none
public record ReadResult(@Nullable PinnedValue value, Outcome outcome) {

    /// What was found.
    public enum Outcome {
        /// The value.
        HIT,
        /// None.
        MISS,
        /// One that is on disk alone: [Keyspace#fetch] brings it.
        ON_DISK,
        /// One that is not held because too much is on its way out.
        THROTTLED,
        /// One that was to be brought from disk and did not come in time, or found no room in memory. It may come when
        /// it is asked for again.
        TIMED_OUT
    }

    /// Of a key that cannot be.
    public static final ReadResult MISS = new ReadResult(null, Outcome.MISS);
    static final ReadResult ON_DISK = new ReadResult(null, Outcome.ON_DISK);
    static final ReadResult THROTTLED = new ReadResult(null, Outcome.THROTTLED);
    static final ReadResult TIMED_OUT = new ReadResult(null, Outcome.TIMED_OUT);

    static ReadResult of(PinnedValue value) {
        return new ReadResult(value, Outcome.HIT);
    }
}
