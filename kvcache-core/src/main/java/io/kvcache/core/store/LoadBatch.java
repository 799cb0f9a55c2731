package io.kvcache.core.store;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;
import java.util.BitSet;

/// A run of blocks of one chain that are resident or on their way to host memory.
public final class LoadBatch {

    private final int namespace;
    private final int from;
    private int[] records;
    private byte[] disks;
    private final BitSet started = new BitSet();
    private int count;

    /// @param namespace number of the chain's
    LoadBatch(int namespace, int from, int to) {
        this.namespace = namespace;
        this.from = from;
        records = new int[to - from];
        disks = new byte[to - from];
    }

    /// First block of the chain in the run.
    public int from() {
        return from;
    }

    /// The first block that does not come.
    public int end() {
        return from + count;
    }

    /// Blocks that come.
    public int count() {
        return count;
    }

    /// Record of block `from + position`.
    public int record(int position) {
        return records[position];
    }

    /// Whether whoever asked has to see that block `from + position` is read; otherwise somebody else does.
    public boolean isStarted(int position) {
        return started.get(position);
    }

    /// The disk that block `from + position` is to be read from, if it is [#isStarted].
    public int disk(int position) {
        return disks[position];
    }

    /// Begins with the next block; under the store's lock.
    boolean startNext(BlockChain chain, RecordPool pool, BlockTree tree, LoadPath loadPath, int pins) {
        int index = from + count;
        int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        boolean inPlace = record != RecordView.NONE
                && pool.depth(record) == index
                && RecordFlags.isBlockOf(pool.flags(record), namespace)
                && (count == 0 || pool.parent(record) == records[count - 1]);
        LoadOutcome start = inPlace ? loadPath.start(record, pins) : LoadOutcome.NOT_FOUND;
        if (start.isAvailable()) {
            started.set(count, start == LoadOutcome.STARTED);
            disks[count] = (byte) (start == LoadOutcome.STARTED ? DiskAddress.diskOf(pool.diskAddress(record)) : 0);
            records[count++] = record;
        }
        return start.isAvailable();
    }

    /// No more blocks begin: keeps what is of those that come, as a run may be kept for long and its chain may be long.
    LoadBatch trimmed() {
        records = Arrays.copyOf(records, count);
        disks = Arrays.copyOf(disks, count);
        return this;
    }
}
