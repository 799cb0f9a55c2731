package io.kvcache.core.tree;

/// A record as it was when it was found: `generation << 32 | record`. Stale once the record's generation has moved
/// on.
public final class RecordHandle {

    /// Nothing found. No handle has this value, as no record has the number -1.
    public static final long MISS = -1;

    /// The look-up met records on the move too often to decide; ask again under the store's lock.
    public static final long UNSURE = -2;

    private RecordHandle() {}

    /// The handle of a record in one of its generations.
    public static long of(int generation, int record) {
        return (long) generation << 32 | record;
    }

    public static int record(long handle) {
        return (int) handle;
    }

    public static int generation(long handle) {
        return (int) (handle >>> 32);
    }

    /// Returns whether a look-up found something.
    public static boolean isFound(long handle) {
        return (int) handle >= 0;
    }
}
