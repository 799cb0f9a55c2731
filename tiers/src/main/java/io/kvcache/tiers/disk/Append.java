package io.kvcache.tiers.disk;

/// A block on its way into a group.
///
/// @param kind whether a caller appended it, or the log writes it again
/// @param ended told where it lies, or [DiskPlace#NONE]
record Append(DiskEntry entry, Pieces pieces, WriteKind kind, Ended ended) {

    /// What follows an append.
    @FunctionalInterface
    interface Ended {
        void ended(long place);
    }

    boolean isRewrite() {
        return kind == WriteKind.REWRITE;
    }
}
