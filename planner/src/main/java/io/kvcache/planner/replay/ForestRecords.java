package io.kvcache.planner.replay;

import io.kvcache.core.policy.RecordView;

/// A forest's nodes as the records of a store, and which of them are resident.
final class ForestRecords implements RecordView {

    private final PrefixForest forest;
    private final boolean[] resident;
    private final int[] residentChildren;
    private final byte[] cohorts;
    private int size;

    ForestRecords(PrefixForest forest) {
        this.forest = forest;
        resident = new boolean[forest.nodeCount()];
        residentChildren = new int[forest.nodeCount()];
        cohorts = new byte[forest.nodeCount()];
    }

    boolean isResident(int node) {
        return resident[node];
    }

    /// Number of resident nodes.
    int size() {
        return size;
    }

    /// Leading blocks of a request that are resident.
    int residentPrefix(int request) {
        int blocks = 0;
        while (blocks < forest.storedBlocks(request) && resident[forest.node(request, blocks)]) {
            blocks++;
        }
        return blocks;
    }

    /// Sets the novelty class that [#noveltyClass] returns for a node.
    void cohort(int node, int cohort) {
        cohorts[node] = (byte) cohort;
    }

    void add(int node) {
        resident[node] = true;
        size++;
        int parent = forest.parent(node);
        if (parent != NONE) {
            residentChildren[parent]++;
        }
    }

    /// Returns the parent when it is a leaf now, else [#NONE].
    int remove(int node) {
        assert residentChildren[node] == 0 : "node " + node + " has resident children";
        resident[node] = false;
        size--;
        int parent = forest.parent(node);
        return parent != NONE && --residentChildren[parent] == 0 ? parent : NONE;
    }

    /// At least one, for a trace in which no block counts.
    @Override
    public int capacity() {
        return Math.max(1, forest.nodeCount());
    }

    @Override
    public int parent(int record) {
        return forest.parent(record);
    }

    @Override
    public int depth(int record) {
        return forest.depth(record);
    }

    @Override
    public int noveltyClass(int record) {
        return cohorts[record];
    }

    @Override
    public int residentChildren(int record) {
        return residentChildren[record];
    }

    @Override
    public long bytes(int record) {
        return 1;
    }

    @Override
    public long fingerprint(int record) {
        return record;
    }
}
