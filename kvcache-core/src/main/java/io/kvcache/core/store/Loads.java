package io.kvcache.core.store;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;
import java.util.BitSet;

/// A run of blocks of one chain that are resident or on their way to host memory.
public final class Loads {

    private final int namespace;
    private final int from;
    private int[] records;
    private byte[] disks;
    private final BitSet started = new BitSet();
    private int count;

    /// @param namespace number of the chain's
    Loads(int namespace, int from, int to) {
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
    public boolean started(int position) {
        return started.get(position);
    }

    /// The disk that block `from + position` is to be read from, if it is [#started].
    public int disk(int position) {
        return disks[position];
    }

    /// Begins with the next block; under the store's lock.
    boolean begin(BlockChain chain, RecordPool pool, BlockTree tree, Onboard onboard, int pins) {
        int index = from + count;
        int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        boolean inPlace = record != RecordView.NONE
                && pool.depth(record) == index
                && Identity.isBlockOf(pool.identity(record), namespace)
                && (count == 0 || pool.parent(record) == records[count - 1]);
        LoadStart start = inPlace ? onboard.begin(record, pins) : LoadStart.NOT_HERE;
        if (start.comes()) {
            started.set(count, start == LoadStart.STARTED);
            disks[count] = (byte) (start == LoadStart.STARTED ? DiskNumber.of(pool.diskPlace(record)) : 0);
            records[count++] = record;
        }
        return start.comes();
    }

    /// No more blocks begin: keeps what is of those that come, as a run may be kept for long and its chain may be long.
    Loads ended() {
        records = Arrays.copyOf(records, count);
        disks = Arrays.copyOf(disks, count);
        return this;
    }
}
