package io.kvcache.core.tree;

import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.lang.foreign.MemorySegment;

/// A pool of three records in heap memory, so small that jcstress can have thousands, and all keys in one bucket.
final class StressTree {

    /// Key that is there throughout.
    static final long KEY_KEPT = 1;

    /// Key that goes.
    static final long KEY_REMOVED = 2;

    /// Key that comes in the place of the one that goes.
    static final long KEY_ADDED = 3;

    private static final int RECORDS = 3;

    final RecordPool pool = new RecordPool(
            MemorySegment.ofArray(new long[(int) (RecordLayout.spanBytes(RECORDS) / Long.BYTES) + 1]), RECORDS);
    final BlockTree tree = new BlockTree(pool);

    /// Reserves and seals a record of this key.
    int add(long key) {
        int record = reserve(key);
        pool.state(record, ControlWord.SEALED, 0);
        return record;
    }

    int reserve(long key) {
        return tree.insert(new NewRecordFields(~key, key, RecordView.NONE, 0, 0, 4096, 0, 0));
    }

    void drop(int record) {
        tree.removeFromIndex(record);
        tree.remove(record);
    }

    long find(long key) {
        return tree.find(~key, key);
    }

    /// One letter for what a look-up said: hit of this very record and generation, miss, unsure, or a lie.
    char verdict(long key, int record, int generation) {
        long handle = find(key);
        if (handle == RecordHandle.MISS) {
            return 'M';
        }
        if (handle == RecordHandle.UNSURE) {
            return 'U';
        }
        return handle == RecordHandle.of(generation, record) ? 'H' : 'X';
    }
}
