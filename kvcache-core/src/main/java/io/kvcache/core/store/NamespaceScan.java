package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.List;

/// Drops or lists what a namespace has, a run of record numbers at a time, so that the lock is never held for the
/// whole pool.
final class NamespaceScan {

    /// Records looked at in one turn of the lock: some microseconds when there is nothing to drop.
    static final int BATCH = 4096;

    private NamespaceScan() {}

    static long drop(RecordPool pool, RecordStates recordStates, int namespaceId, int from) {
        long dropped = 0;
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int state = ControlWord.state(pool.control(record));
            boolean known = state != ControlWord.FREE && state != ControlWord.DELETED;
            if (known && RecordFlags.namespaceId(pool.flags(record)) == namespaceId && pool.parent(record) == NONE) {
                dropped += recordStates.markDeleted(record, EventKind.DROPPED);
            }
        }
        return dropped;
    }

    static void objects(RecordPool pool, int namespaceId, int from, List<ObjectCatalog.Entry> found) {
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int identity = pool.flags(record);
            if (isKnown(ControlWord.state(pool.control(record)))
                    && RecordFlags.isObject(identity)
                    && RecordFlags.namespaceId(identity) == namespaceId) {
                BlockKey digest = new BlockKey(pool.keyHi(record), pool.keyLo(record));
                found.add(new ObjectCatalog.Entry(digest, pool.bytes(record)));
            }
        }
    }

    static void blocks(RecordPool pool, int namespaceId, int from, List<StoredBlock> found) {
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int identity = pool.flags(record);
            if (isKnown(ControlWord.state(pool.control(record)))
                    && !RecordFlags.isObject(identity)
                    && RecordFlags.namespaceId(identity) == namespaceId) {
                int parent = pool.parent(record);
                found.add(new StoredBlock(
                        new BlockKey(pool.keyHi(record), pool.keyLo(record)),
                        parent == NONE ? null : new BlockKey(pool.keyHi(parent), pool.keyLo(parent))));
            }
        }
    }

    private static boolean isKnown(int state) {
        return switch (state) {
            case ControlWord.SEALED, ControlWord.ON_DISK, ControlWord.LOADING, ControlWord.LOADED -> true;
            default -> false;
        };
    }
}
