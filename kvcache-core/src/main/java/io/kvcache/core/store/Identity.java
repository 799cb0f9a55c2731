package io.kvcache.core.store;

/// A record's identity word: `namespace << 16 | cohort << 9 | fresh << 8 | flags`.
final class Identity {

    static final int OBJECT = 1;

    /// Waits to be written to disk.
    static final int QUEUED = 2;

    /// Is being written to disk.
    static final int WRITING = 4;

    /// Three bits: uses since it was put, up to [#MOST_USES].
    static final int USES = 7 << 3;

    static final int MOST_USES = 7;

    private static final int USES_SHIFT = 3;

    /// Was used since it was written to where it lies on disk, or was last kept there.
    static final int USED_ON_DISK = 64;

    /// See [Over].
    static final int OVER = 128;

    /// Nobody has used the record since it was put, and it has been in host memory since.
    static final int FRESH = 1 << 8;

    private static final int COHORT_SHIFT = 9;
    private static final int COHORT_MASK = 7;

    private Identity() {}

    static int uses(int identity) {
        return (identity & USES) >>> USES_SHIFT;
    }

    /// The bits of so many uses.
    static int usesBits(int uses) {
        return uses << USES_SHIFT;
    }

    static int block(int namespace) {
        return namespace << 16;
    }

    /// A block that is put.
    ///
    /// @param cohort as [io.kvcache.core.policy.NoveltyClass] has it, or -1 when nobody knows
    static int block(int namespace, int cohort) {
        return block(namespace) | (cohort + 1) << COHORT_SHIFT | FRESH;
    }

    /// What [#block] was told, or -1.
    static int cohort(int identity) {
        return (identity >>> COHORT_SHIFT & COHORT_MASK) - 1;
    }

    static int object(int namespace) {
        return namespace << 16 | OBJECT;
    }

    static int namespace(int identity) {
        return identity >>> 16;
    }

    static boolean isObject(int identity) {
        return (identity & OBJECT) != 0;
    }

    /// Whether a record is a block of a namespace. Keys of blocks are digests over their namespace, so what is
    /// found by one is; unless somebody names blocks by keys that are another's.
    static boolean isBlockOf(int identity, int namespace) {
        return namespace(identity) == namespace && !isObject(identity);
    }

    /// Whether a record is an object of a namespace; the same holds of keys of objects.
    static boolean isObjectOf(int identity, int namespace) {
        return namespace(identity) == namespace && isObject(identity);
    }

    static boolean has(int identity, int flag) {
        return (identity & flag) != 0;
    }
}
