package io.kvcache.core.store;

/// A record's identity word: `namespace << 16 | part << 8 | flags`.
final class Identity {

    static final int OBJECT = 1;

    /// Waits to be written to disk.
    static final int QUEUED = 2;

    /// Is being written to disk.
    static final int WRITING = 4;

    private Identity() {}

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

    static boolean has(int identity, int flag) {
        return (identity & flag) != 0;
    }
}
