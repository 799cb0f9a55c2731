package io.kvcache.core.store;

/// A record's identity word: `namespace << 16 | part << 8 | flags`.
final class Identity {

    private static final int OBJECT = 1;

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
}
