package io.kvcache.tiers;

import org.jspecify.annotations.Nullable;

/// Somebody's claim on the store's memory: an open table, view or writer.
///
/// @param number counts claims from 0; the lowest is the oldest
/// @param description what is held, for the report
/// @param acquiredAt the stack of who took it, when the store tracks its holders
record OpenHandle(long number, Object description, @Nullable Throwable acquiredAt) {

    /// Stands for every claim when the store does not track them.
    static final OpenHandle UNTRACKED = new OpenHandle(-1, "", null);
}
