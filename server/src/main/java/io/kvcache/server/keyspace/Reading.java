package io.kvcache.server.keyspace;

import org.jspecify.annotations.Nullable;

/// What came of a read.
///
/// **Ownership.** Whoever is given it closes the value, if there is one.
///
/// @param value held in place, or null
/// @param outcome why there is a value, or none
public record Reading(@Nullable Value value, Outcome outcome) {

    /// What was found.
    public enum Outcome {
        /// The value.
        FOUND,
        /// None.
        ABSENT,
        /// One that is on disk alone: [Keyspace#fetch] brings it.
        AWAY,
        /// One that is not held because too much is on its way out.
        BUSY,
        /// One that was to be brought from disk and did not come in time, or found no room in memory. It may come when
        /// it is asked for again.
        LATE
    }

    /// Of a key that cannot be.
    public static final Reading NOTHING = new Reading(null, Outcome.ABSENT);
    static final Reading AWAY = new Reading(null, Outcome.AWAY);
    static final Reading BUSY = new Reading(null, Outcome.BUSY);
    static final Reading LATE = new Reading(null, Outcome.LATE);

    static Reading of(Value value) {
        return new Reading(value, Outcome.FOUND);
    }
}
