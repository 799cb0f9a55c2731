package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/// The least a store does around its policies, over plain arrays: a naive model that checks every victim.
///
/// Record numbers are used again after a record has left, under another key, as a store does. Records of a path may
/// belong to different policy instances (slot classes).
public final class TreeStore implements RecordView {

    private final int[] parents;
    private final int[] depths;
    private final int[] children;
    private final int[] owners;
    private final boolean[] pinned;
    private final long[] fingerprints;
    private final List<EvictionPolicy> policies = new ArrayList<>();
    private long nextFingerprint;

    public TreeStore(int capacity) {
        parents = new int[capacity];
        depths = new int[capacity];
        children = new int[capacity];
        owners = new int[capacity];
        pinned = new boolean[capacity];
        fingerprints = new long[capacity];
        Arrays.fill(owners, NONE);
    }

    /// Adds a slot class with its own policy instance; returns the class number.
    public int addClass(EvictionPolicy policy) {
        policies.add(policy);
        return policies.size() - 1;
    }

    public EvictionPolicy policy(int slotClass) {
        return policies.get(slotClass);
    }

    public boolean isResident(int record) {
        return owners[record] != NONE;
    }

    public boolean isPinned(int record) {
        return pinned[record];
    }

    public boolean isLeaf(int record) {
        return isResident(record) && children[record] == 0;
    }

    public int owner(int record) {
        return owners[record];
    }

    public int[] residents() {
        return IntStream.range(0, owners.length).filter(this::isResident).toArray();
    }

    /// Makes a free record resident below a resident parent, or as a root.
    public void admit(int record, int parent, int slotClass) {
        enter(record, parent, slotClass);
        policy(slotClass).admit(record);
    }

    /// The same by a guess.
    public void prefetch(int record, int parent, int slotClass) {
        enter(record, parent, slotClass);
        policy(slotClass).onPrefetched(record);
    }

    private void enter(int record, int parent, int slotClass) {
        assertThat(isResident(record)).isFalse();
        parents[record] = parent;
        depths[record] = parent == NONE ? 0 : depths[parent] + 1;
        fingerprints[record] = ++nextFingerprint;
        owners[record] = slotClass;
        children[record] = 0;
        pinned[record] = false;
        if (parent != NONE) {
            children[parent]++;
        }
    }

    /// A request that ends at this record.
    public void use(int record) {
        boolean first = true;
        for (int at = record; at != NONE; at = parents[at]) {
            if (first || policy(owners[at]).touchesAncestors()) {
                policy(owners[at]).touch(at);
            }
            first = false;
        }
    }

    public void pin(int record, boolean pinnedNow) {
        pinned[record] = pinnedNow;
    }

    public void demote(int record) {
        policy(owners[record]).demote(record);
    }

    public void forget(int record) {
        policy(owners[record]).forget(record);
        leave(record);
    }

    /// Another than the policy has chosen this record to go.
    public void evictByOther(int record) {
        policy(owners[record]).onEvicted(record);
        leave(record);
    }

    /// Evicts from one class and checks the victim. Returns it, or [#NONE].
    public int evict(int slotClass) {
        int victim = policy(slotClass).evict(this::claim);
        if (victim != EvictionPolicy.NONE) {
            assertThat(owners[victim]).as("class of victim %d", victim).isEqualTo(slotClass);
            assertThat(children[victim]).as("children of victim %d", victim).isZero();
            assertThat(pinned[victim]).as("victim %d is pinned", victim).isFalse();
            leave(victim);
        }
        return victim;
    }

    public void validate() {
        for (int slotClass = 0; slotClass < policies.size(); slotClass++) {
            int of = slotClass;
            long expected = Arrays.stream(owners).filter(owner -> owner == of).count();
            assertThat(policy(slotClass).size())
                    .as("size of class %d", slotClass)
                    .isEqualTo((int) expected);
        }
    }

    /// The record that ranks lowest among the unpinned leaves of a class, or [#NONE].
    public int lowest(int slotClass, IntUnaryOperator rank) {
        int best = NONE;
        for (int record = 0; record < owners.length; record++) {
            if (owners[record] == slotClass && isLeaf(record) && !pinned[record]) {
                best = best == NONE || rank.applyAsInt(record) < rank.applyAsInt(best) ? record : best;
            }
        }
        return best;
    }

    private boolean claim(int record) {
        assertThat(isLeaf(record))
                .as("record %d offered for a claim is a leaf", record)
                .isTrue();
        return !pinned[record];
    }

    private void leave(int record) {
        owners[record] = NONE;
        int parent = parents[record];
        if (parent != NONE && --children[parent] == 0) {
            policy(owners[parent]).onBecameLeaf(parent);
        }
    }

    @Override
    public int capacity() {
        return owners.length;
    }

    @Override
    public int parent(int record) {
        return parents[record];
    }

    @Override
    public int depth(int record) {
        return depths[record];
    }

    @Override
    public int residentChildren(int record) {
        return children[record];
    }

    @Override
    public long bytes(int record) {
        return 4096;
    }

    @Override
    public long fingerprint(int record) {
        return fingerprints[record];
    }
}
