package io.kvcache.core.tree;

/// A record's identity word: `namespace << 16 | on device << 15 | unrequested << 13 | prefetched << 12 |
/// cohort << 9 | fresh << 8 | flags`.
public final class RecordFlags {

    public static final int OBJECT = 1;

    /// Waits to be written to disk.
    public static final int QUEUED = 2;

    /// Is being written to disk.
    public static final int WRITING = 4;

    /// Three bits: uses since it was put, up to [#MAX_USES].
    public static final int USES = 7 << 3;

    public static final int MAX_USES = 7;

    private static final int USES_SHIFT = 3;

    /// Was used since it was written to where it lies on disk, or was last kept there.
    public static final int USED_ON_DISK = 64;

    /// Will not be used again, or not soon, as callers say.
    public static final int EXPIRED = 128;

    /// The record was not used since it was put, and it has been in host memory since.
    public static final int FRESH = 1 << 8;

    private static final int NOVELTY_SHIFT = 9;
    private static final int NOVELTY_MASK = 7;

    /// Was brought into host memory ahead of its readers, and not used since.
    public static final int PREFETCHED = 1 << 12;

    /// Is on its way from disk, and no caller waits for it.
    public static final int UNREQUESTED = 1 << 13;

    /// Is on its way from disk, and who has it pinned may read what has come of it.
    public static final int READ_IN_STEPS = 1 << 14;

    /// A device has a copy, beside those in other tiers or alone.
    public static final int ON_DEVICE = 1 << 15;

    private RecordFlags() {}

    public static int uses(int flags) {
        return (flags & USES) >>> USES_SHIFT;
    }

    /// Returns the bits that encode a number of uses.
    public static int usesBits(int uses) {
        return uses << USES_SHIFT;
    }

    public static int ofBlock(int namespace) {
        return namespace << 16;
    }

    /// A block that is put.
    ///
    /// @param cohort as [io.kvcache.core.policy.NoveltyClass] has it, or -1 when it is unknown
    public static int ofBlock(int namespace, int cohort) {
        return ofBlock(namespace) | (cohort + 1) << NOVELTY_SHIFT | FRESH;
    }

    /// Returns the novelty class given to [#ofBlock], or -1.
    public static int noveltyClass(int flags) {
        return (flags >>> NOVELTY_SHIFT & NOVELTY_MASK) - 1;
    }

    public static int ofObject(int namespace) {
        return namespace << 16 | OBJECT;
    }

    public static int namespaceId(int flags) {
        return flags >>> 16;
    }

    public static boolean isObject(int flags) {
        return (flags & OBJECT) != 0;
    }

    /// Returns whether a record is a block of a namespace. Keys of blocks are digests over their namespace, so a
    /// match by key implies it, unless a caller names blocks by keys of another namespace.
    public static boolean isBlockOf(int flags, int namespace) {
        return namespaceId(flags) == namespace && !isObject(flags);
    }

    /// Returns whether a record is an object of a namespace; the same holds of keys of objects.
    public static boolean isObjectOf(int flags, int namespace) {
        return namespaceId(flags) == namespace && isObject(flags);
    }

    /// Returns whether a record was prefetched and not used since, or comes without a caller that waits.
    public static boolean isPrefetch(int flags) {
        return has(flags, PREFETCHED | UNREQUESTED);
    }

    public static boolean has(int flags, int flag) {
        return (flags & flag) != 0;
    }
}
