package io.kvcache.core.store;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.RecordStates.RecordPins;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// The read side of a store: what is here, and holding it there. Takes no lock, but for the rare cases that
/// say so.
///
/// A block is found by a chain of its own namespace alone, whatever keys the chain names, and only where it lies as
/// deep in the store as the chain says: keys that a caller lists need not be those of one chain.
///
/// **Threads.** Any.
public final class RecordLookup {

    /// Look-ups of a walk that are under way together: about as many misses as a core keeps track of.
    private static final int PREFETCH_DISTANCE = 16;

    private final RecordPool pool;
    private final BlockTree tree;
    private final NamespaceRegistry namespaceRegistry;
    private final RecordPins pins;
    private final RecordStates recordStates;
    private final AccessDrain accessDrain;
    private final ReentrantLock lock;

    RecordLookup(StoreComponents parts, RecordStates recordStates, AccessDrain accessDrain, ReentrantLock lock) {
        pool = parts.pool();
        tree = parts.tree();
        namespaceRegistry = parts.namespaceRegistry();
        pins = parts.recordPins();
        this.recordStates = recordStates;
        this.accessDrain = accessDrain;
        this.lock = lock;
    }

    /// How many leading blocks of the chain are here, looking at `limit` at most. Allocates nothing.
    ///
    /// What is known of a chain is a prefix of it, so this is a binary search. First and last block are asked
    /// before anything else: most prompts are either new or here as a whole.
    public int match(BlockChain chain, int limit) {
        int namespace = namespaceRegistry.idOf(chain.namespace());
        if (limit == 0 || !contains(chain, 0, namespace)) {
            return 0;
        }
        if (contains(chain, limit - 1, namespace)) {
            return limit;
        }
        int known = 0;
        int unknown = limit - 1;
        while (unknown - known > 1) {
            int middle = (known + unknown) >>> 1;
            if (contains(chain, middle, namespace)) {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        return known + 1;
    }

    /// How many leading blocks of the chain are here or on disk, looking from block `resident` on, of which
    /// it is known that all before it are here.
    public int matchKnown(BlockChain chain, int resident) {
        int known = resident - 1;
        int unknown = chain.length();
        int namespace = namespaceRegistry.idOf(chain.namespace());
        if (known + 1 == unknown || !isKnown(chain, known + 1, namespace)) {
            return known + 1;
        }
        if (isKnown(chain, unknown - 1, namespace)) {
            return unknown;
        }
        known++;
        unknown--;
        while (unknown - known > 1) {
            int middle = (known + unknown) >>> 1;
            if (isKnown(chain, middle, namespace)) {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        return known + 1;
    }

    private boolean isKnown(BlockChain chain, int index, int namespace) {
        return isBlockAt(findKnown(chain.keyHi(index), chain.keyLo(index)), index, namespace);
    }

    /// Whether a handle is of a block of a namespace that lies so deep; of one that may go at any moment, which is
    /// a matter of the caller's.
    private boolean isBlockAt(long handle, int index, int namespace) {
        if (!RecordHandle.isFound(handle)) {
            return false;
        }
        long found = pool.flagsAndDepth(RecordHandle.record(handle));
        return (int) found == index && RecordFlags.isBlockOf((int) (found >>> 32), namespace);
    }

    /// Whether a handle is of a block of a namespace, with the same reserve.
    private boolean isBlockOf(long handle, int namespace) {
        return RecordHandle.isFound(handle)
                && RecordFlags.isBlockOf(pool.flags(RecordHandle.record(handle)), namespace);
    }

    /// How many leading blocks of a list of keys are here or on disk, each below the one before it, looking at
    /// `most` at most. It looks every block up, as [#match] takes the last block's word for those above it.
    public int matchLinked(BlockChain chain, int most) {
        int namespace = namespaceRegistry.idOf(chain.namespace());
        int above = RecordView.NONE;
        for (int index = 0; index < most; index++) {
            long handle = findKnown(chain.keyHi(index), chain.keyLo(index));
            if (!isBlockAt(handle, index, namespace)
                    || (index > 0 && pool.parent(RecordHandle.record(handle)) != above)) {
                return index;
            }
            above = RecordHandle.record(handle);
        }
        return most;
    }

    /// Finds the record of a key that is here or on disk.
    ///
    /// @return a [RecordHandle] or [RecordHandle#MISS]
    public long findKnown(long hi, long lo) {
        long found = tree.findKnown(hi, lo);
        if (found != RecordHandle.UNSURE) {
            return found;
        }
        lock.lock();
        try {
            return tree.findKnown(hi, lo);
        } finally {
            lock.unlock();
        }
    }

    /// Looks every block up, from the first on, and answers how many are here before one is not: what
    /// [#match] finds by knowing that they form a prefix.
    ///
    /// One look-up waits for memory once or twice. Here the lines of sixteen are asked for before any is
    /// compared, so that their waits overlap.
    public int walk(BlockChain chain, int limit) {
        int namespace = namespaceRegistry.idOf(chain.namespace());
        int[] first = new int[PREFETCH_DISTANCE];
        for (int at = 0; at < limit; at += PREFETCH_DISTANCE) {
            int end = Math.min(limit, at + PREFETCH_DISTANCE);
            for (int index = at; index < end; index++) {
                first[index - at] = tree.bucketHead(chain.keyLo(index));
            }
            long taken = 0;
            for (int index = at; index < end; index++) {
                taken |= tree.prefetchLine(first[index - at]);
            }
            if (taken == 0) {
                return at;
            }
            for (int index = at; index < end; index++) {
                if (!contains(chain, index, namespace)) {
                    return index;
                }
            }
        }
        return limit;
    }

    private boolean contains(BlockChain chain, int index, int namespace) {
        return isBlockAt(find(chain.keyHi(index), chain.keyLo(index)), index, namespace);
    }

    /// Finds a sealed record by its key; under the lock when records move too fast under its eyes.
    ///
    /// @return a [RecordHandle] or [RecordHandle#MISS]
    public long find(long hi, long lo) {
        long found = tree.find(hi, lo);
        return found == RecordHandle.UNSURE ? findLocked(hi, lo) : found;
    }

    private long findLocked(long hi, long lo) {
        lock.lock();
        try {
            return tree.find(hi, lo);
        } finally {
            lock.unlock();
        }
    }

    /// Pins the deepest block of the chain that is here, and so all above it, and touches them.
    ///
    /// @return the record's [RecordHandle], or [RecordHandle#MISS] when not even the first block is here
    public long pinDeepest(BlockChain chain) {
        while (true) {
            int blocks = match(chain, chain.length());
            if (blocks == 0) {
                return RecordHandle.MISS;
            }
            long handle = find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1));
            if (RecordHandle.isFound(handle) && pin(handle)) {
                return isAtDepth(handle, blocks - 1, namespaceRegistry.idOf(chain.namespace()))
                        ? handle
                        : RecordHandle.MISS;
            }
        }
    }

    /// Whether a pinned block is of the caller's namespace and lies as deep in its chain as the caller's chain
    /// says; lets go of it when not. A chain of engine keys may begin in the middle of another: its keys are here,
    /// but the blocks above them are not its own.
    private boolean isAtDepth(long handle, int index, int namespace) {
        boolean inPlace = isBlockAt(handle, index, namespace);
        if (!inPlace) {
            unpin(RecordHandle.record(handle));
        }
        return inPlace;
    }

    /// Finds, pins and touches one block of a namespace.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS]
    public long pinBlock(NamespaceEntry of, BlockKey key) {
        long handle = pinKey(key.hi(), key.lo());
        if (!RecordHandle.isFound(handle) || isBlockOf(handle, of.id())) {
            return handle;
        }
        unpin(RecordHandle.record(handle));
        return RecordHandle.MISS;
    }

    /// Whether a block of a namespace is here or on disk.
    public boolean containsBlock(NamespaceEntry of, BlockKey key) {
        return isBlockOf(findKnown(key.hi(), key.lo()), of.id());
    }

    /// Whether a record that the caller has pinned is an object of a namespace.
    public boolean isObjectOf(NamespaceEntry of, int record) {
        return RecordFlags.isObjectOf(pool.flags(record), of.id());
    }

    /// Finds, pins and touches one record.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS]
    public long pinKey(long hi, long lo) {
        long handle = peekKey(hi, lo);
        if (RecordHandle.isFound(handle)) {
            accessDrain.record(handle);
        }
        return handle;
    }

    /// Finds and pins one record, which is no use of it.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS]
    public long peekKey(long hi, long lo) {
        while (true) {
            long handle = find(hi, lo);
            if (!RecordHandle.isFound(handle)
                    || pins.pin(RecordHandle.record(handle), RecordHandle.generation(handle))) {
                return handle;
            }
        }
    }

    private boolean pin(long handle) {
        boolean pinned = pins.pin(RecordHandle.record(handle), RecordHandle.generation(handle));
        if (pinned) {
            accessDrain.record(handle);
        }
        return pinned;
    }

    /// Takes a pin away; under the lock when it was the last one on a dropped record.
    ///
    /// @throws IllegalStateException when the record has none
    public void unpin(int record) {
        if (pins.unpin(record)) {
            lock.lock();
            try {
                recordStates.reap(record);
            } finally {
                lock.unlock();
            }
        }
    }

    /// Counts a record as used now, and with it the blocks above it.
    public void touch(long handle) {
        accessDrain.record(handle);
    }
}
