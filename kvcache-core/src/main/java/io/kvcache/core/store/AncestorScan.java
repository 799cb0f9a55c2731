package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Finds the blocks above a block, a bounded number of them a turn of the lock.
///
/// Between two turns the record that the last one ended at may be gone, so each begins by looking its
/// key up again.
final class AncestorScan {

    private static final int BATCH = 1024;

    private final RecordPool pool;
    private final BlockTree tree;
    private final ReentrantLock lock;

    AncestorScan(RecordPool pool, BlockTree tree, ReentrantLock lock) {
        this.pool = pool;
        this.tree = tree;
        this.lock = lock;
    }

    /// The keys of a block and of all before it, from the first on; empty when one of them is not known.
    List<BlockKey> ancestorsOf(BlockKey key) {
        List<BlockKey> upwards = new ArrayList<>();
        BlockKey next = key;
        while (next != null) {
            lock.lock();
            try {
                next = climb(next, upwards);
            } finally {
                lock.unlock();
            }
        }
        Collections.reverse(upwards);
        return upwards;
    }

    /// Adds a block and some above it; answers the next one, or null at the end. What is not known ends
    /// it with nothing.
    private @Nullable BlockKey climb(BlockKey from, List<BlockKey> upwards) {
        int record = tree.findAny(from.hi(), from.lo());
        for (int left = BATCH; left > 0; left--) {
            if (record == NONE || !ControlWord.isKnown(ControlWord.state(pool.control(record)))) {
                upwards.clear();
                return null;
            }
            upwards.add(new BlockKey(pool.keyHi(record), pool.keyLo(record)));
            record = pool.parent(record);
            if (record == NONE) {
                return null;
            }
        }
        return new BlockKey(pool.keyHi(record), pool.keyLo(record));
    }
}
