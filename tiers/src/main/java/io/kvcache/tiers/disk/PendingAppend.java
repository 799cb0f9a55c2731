package io.kvcache.tiers.disk;

/// A block on its way into a group.
///
/// @param kind whether a caller appended it, or the log writes it again
/// @param completion told where it lies, or [LogAddress#NONE]
record PendingAppend(DiskEntry entry, BufferList bufferList, WriteKind kind, Completion completion) {

    /// What follows an append.
    @FunctionalInterface
    interface Completion {
        void complete(long address);
    }

    boolean isRewrite() {
        return kind == WriteKind.REWRITE;
    }
}
