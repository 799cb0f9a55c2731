package io.kvcache.planner.replay;

/// The resident nodes of a forest, for caches that may keep a block without its parent.
final class ResidentSet {

    private final PrefixForest forest;
    private final int[] members;
    /// For each node its place among the members and one, 0 when it is absent.
    private final int[] places;

    private final int[] children;
    private int size;

    ResidentSet(PrefixForest forest) {
        this.forest = forest;
        members = new int[forest.nodeCount()];
        places = new int[forest.nodeCount()];
        children = new int[forest.nodeCount()];
    }

    int size() {
        return size;
    }

    boolean contains(int node) {
        return places[node] > 0;
    }

    /// One of them, in no particular order; `index` is below [#size()].
    int get(int index) {
        return members[index];
    }

    /// Resident children of a node, itself resident or not.
    int childCount(int node) {
        return children[node];
    }

    /// Leading blocks of a request that are resident.
    int prefixLength(int request) {
        int blocks = 0;
        while (blocks < forest.storedBlocks(request) && contains(forest.node(request, blocks))) {
            blocks++;
        }
        return blocks;
    }

    void add(int node) {
        assert !contains(node) : "node " + node + " is here";
        members[size++] = node;
        places[node] = size;
        int parent = forest.parent(node);
        if (parent != PrefixForest.NONE) {
            children[parent]++;
        }
    }

    /// Returns the parent when it is resident and has no resident child now, else [PrefixForest#NONE].
    int remove(int node) {
        assert contains(node) : "node " + node + " is not here";
        int place = places[node] - 1;
        members[place] = members[--size];
        places[members[place]] = place + 1;
        places[node] = 0;
        int parent = forest.parent(node);
        return parent != PrefixForest.NONE && --children[parent] == 0 && contains(parent) ? parent : PrefixForest.NONE;
    }
}
