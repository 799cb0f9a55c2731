package io.kvcache.core.store;

/// A record's identity word: `namespace << 16 | cohort << 9 | fresh << 8 | flags`.
final class RecordFlags {

    static final int OBJECT = 1;

    /// Waits to be written to disk.
    static final int QUEUED = 2;

    /// Is being written to disk.
    static final int WRITING = 4;

    /// Three bits: uses since it was put, up to [#MAX_USES].
    static final int USES = 7 << 3;

    static final int MAX_USES = 7;

    private static final int USES_SHIFT = 3;

    /// Was used since it was written to where it lies on disk, or was last kept there.
    static final int USED_ON_DISK = 64;

    /// See [ExpiredBlocks].
    static final int EXPIRED = 128;

    /// Nobody has used the record since it was put, and it has been in host memory since.
    static final int FRESH = 1 << 8;

    private static final int NOVELTY_SHIFT = 9;
    private static final int NOVELTY_MASK = 7;

    private RecordFlags() {}

    static int uses(int flags) {
        return (flags & USES) >>> USES_SHIFT;
    }

    /// The bits of so many uses.
    static int usesBits(int uses) {
        return uses << USES_SHIFT;
    }

    static int ofBlock(int namespace) {
        return namespace << 16;
    }

    /// A block that is put.
    ///
    /// @param cohort as [io.kvcache.core.policy.NoveltyClass] has it, or -1 when nobody knows
    static int ofBlock(int namespace, int cohort) {
        return ofBlock(namespace) | (cohort + 1) << NOVELTY_SHIFT | FRESH;
    }

    /// What [#ofBlock] was told, or -1.
    static int noveltyClass(int flags) {
        return (flags >>> NOVELTY_SHIFT & NOVELTY_MASK) - 1;
    }

    static int ofObject(int namespace) {
        return namespace << 16 | OBJECT;
    }

    static int namespaceId(int flags) {
        return flags >>> 16;
    }

    static boolean isObject(int flags) {
        return (flags & OBJECT) != 0;
    }

    /// Whether a record is a block of a namespace. Keys of blocks are digests over their namespace, so what is
    /// found by one is; unless somebody names blocks by keys that are another's.
    static boolean isBlockOf(int flags, int namespace) {
        return namespaceId(flags) == namespace && !isObject(flags);
    }

    /// Whether a record is an object of a namespace; the same holds of keys of objects.
    static boolean isObjectOf(int flags, int namespace) {
        return namespaceId(flags) == namespace && isObject(flags);
    }

    static boolean has(int flags, int flag) {
        return (flags & flag) != 0;
    }
}
