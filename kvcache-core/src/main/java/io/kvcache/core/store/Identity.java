package io.kvcache.core.store;

/// A record's identity word: `namespace << 16 | part << 8 | flags`.
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

    /// What concerns the record and not the block.
    static final int OWN = QUEUED | WRITING | USES | USED_ON_DISK | OVER;

    private Identity() {}

    static int uses(int identity) {
        return (identity & USES) >>> USES_SHIFT;
    }

    /// The bits of so many uses.
    static int usesBits(int uses) {
        return uses << USES_SHIFT;
    }

    static int block(int namespace, int part) {
        return namespace << 16 | part << 8;
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
