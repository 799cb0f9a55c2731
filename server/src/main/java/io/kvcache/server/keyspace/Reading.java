package io.kvcache.server.keyspace;

import org.jspecify.annotations.Nullable;

/// What came of a read.
///
/// **Ownership.** Whoever is given it closes the value, if there is one.
///
/// @param value held in place, or null
/// @param busy whether there would be one, and it is not held because too much is on its way out
public record Reading(@Nullable Value value, boolean busy) {

    static final Reading NOTHING = new Reading(null, false);
    static final Reading BUSY = new Reading(null, true);

    static Reading of(Value value) {
        return new Reading(value, false);
    }
}
