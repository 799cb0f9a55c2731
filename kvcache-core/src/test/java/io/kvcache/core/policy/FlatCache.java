package io.kvcache.core.policy;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/// A cache of blocks without parents, by key: the least around a policy for loads that need no trees.
final class FlatCache implements RecordView {

    private final EvictionPolicy policy;
    private final long[] keys;
    private final Map<Long, Integer> records = new HashMap<>();
    private final ArrayDeque<Integer> free = new ArrayDeque<>();

    FlatCache(PolicyKind kind, int capacity, int blocks) {
        keys = new long[capacity];
        policy = kind.create(this);
        for (int record = 0; record < blocks; record++) {
            free.add(record);
        }
    }

    EvictionPolicy policy() {
        return policy;
    }

    /// Uses a block, and admits it when it is absent. Returns whether it was here.
    boolean use(long key) {
        Integer known = records.get(key);
        if (known != null) {
            policy.touch(known);
            return true;
        }
        if (free.isEmpty()) {
            int victim = policy.evict(any -> true);
            records.remove(keys[victim]);
            free.add(victim);
        }
        int record = free.remove();
        keys[record] = key;
        records.put(key, record);
        policy.admit(record);
        return false;
    }

    @Override
    public int capacity() {
        return keys.length;
    }

    @Override
    public int parent(int record) {
        return NONE;
    }

    @Override
    public int depth(int record) {
        return 0;
    }

    @Override
    public int residentChildren(int record) {
        return 0;
    }

    @Override
    public long bytes(int record) {
        return 4096;
    }

    @Override
    public long fingerprint(int record) {
        return keys[record] * 0x9E3779B97F4A7C15L;
    }
}
