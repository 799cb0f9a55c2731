package io.kvcache.core.policy;

import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// A cache of blocks without parents, by key: the least around a policy for loads that need no trees.
public final class FlatCache implements FlatRecords {

    private final EvictionPolicy policy;
    private final long[] keys;
    private final Map<Long, Integer> records = new HashMap<>();
    private final ArrayDeque<Integer> free = new ArrayDeque<>();
    private final BitSet copies = new BitSet();
    private final byte[] cohorts;
    private int cohort;

    public FlatCache(EvictionPolicyFactory kind, int capacity, int blocks) {
        keys = new long[capacity];
        cohorts = new byte[capacity];
        policy = kind.create(this);
        for (int record = 0; record < blocks; record++) {
            free.add(record);
        }
    }

    public EvictionPolicy policy() {
        return policy;
    }

    /// Uses a block, and admits it when it is absent. Returns whether it was here.
    public boolean use(long key) {
        Integer known = records.get(key);
        if (known != null) {
            policy.touch(known);
            return true;
        }
        if (free.isEmpty()) {
            int victim = policy.evict(any -> true);
            records.remove(keys[victim]);
            leave(victim);
        }
        policy.admit(enter(key));
        return false;
    }

    /// Sets the cohort of the blocks that come from now on.
    public void setNoveltyClass(int step) {
        cohort = step;
    }

    /// The request that uses a block goes on with one that is not kept.
    public boolean useThenContinue(long key) {
        boolean here = use(key);
        int record = Objects.requireNonNull(records.get(key));
        policy.onContinued(record);
        policy.onBecameLeaf(record);
        return here;
    }

    /// Brings in a block that is absent, for which there is room.
    public void prefetch(long key) {
        policy.onPrefetched(enter(key));
    }

    /// The same, and has it go unread. The record is the next to be taken again.
    public void prefetchUnused(long key) {
        prefetch(key);
        int record = Objects.requireNonNull(records.remove(key));
        policy.onEvicted(record);
        leave(record);
        free.addFirst(free.removeLast());
    }

    private int enter(long key) {
        int record = free.remove();
        keys[record] = key;
        cohorts[record] = (byte) cohort;
        records.put(key, record);
        return record;
    }

    /// How many blocks more it has room for.
    public int freeRecords() {
        return free.size();
    }

    /// Takes away a block that is here, as its owner's drop or replacement does.
    public void drop(long key) {
        int record = Objects.requireNonNull(records.remove(key));
        policy.forget(record);
        leave(record);
    }

    private void leave(int record) {
        copies.clear(record);
        free.add(record);
    }

    /// Returns whether a block is here.
    public boolean has(long key) {
        return records.containsKey(key);
    }

    /// Says of which class of requests a block is that is here.
    public void label(long key, int reuseClass) {
        policy.label(Objects.requireNonNull(records.get(key)), reuseClass);
    }

    /// Says how little of a block that is here matters.
    public void setWeight(long key, int halvings) {
        policy.setWeight(Objects.requireNonNull(records.get(key)), halvings);
    }

    /// A slower tier gets a copy of a block that is here, or loses it.
    public void setCopy(long key, boolean there) {
        int record = Objects.requireNonNull(records.get(key));
        copies.set(record, there);
        policy.onCopyChanged(record);
    }

    @Override
    public int noveltyClass(int record) {
        return cohorts[record];
    }

    @Override
    public boolean hasCopy(int record) {
        return copies.get(record);
    }

    @Override
    public int capacity() {
        return keys.length;
    }

    @Override
    public long bytes(int record) {
        return 4096;
    }

    @Override
    public long fingerprint(int record) {
        return fingerprintOf(keys[record]);
    }

    public long fingerprintOf(long key) {
        return key * 0x9E3779B97F4A7C15L;
    }
}
