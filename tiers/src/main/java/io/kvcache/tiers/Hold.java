package io.kvcache.tiers;

import org.jspecify.annotations.Nullable;

/// Somebody's claim on the store's memory: an open table, view or writer.
///
/// @param number counts claims from 0; the lowest is the oldest
/// @param what what is held, for the report
/// @param where the stack of who took it, when the store tracks its holders
record Hold(long number, Object what, @Nullable Throwable where) {

    /// Stands for every claim when the store does not track them.
    static final Hold UNTRACKED = new Hold(-1, "", null);
}
