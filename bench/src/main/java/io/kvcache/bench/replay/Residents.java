package io.kvcache.bench.replay;

/// Which nodes of a forest are resident, for caches that may keep a block without the one before it.
final class Residents {

    private final TraceForest forest;
    private final int[] members;
    /// For each node its place among the members and one, 0 when it is absent.
    private final int[] places;

    private final int[] children;
    private int size;

    Residents(TraceForest forest) {
        this.forest = forest;
        members = new int[forest.nodes()];
        places = new int[forest.nodes()];
        children = new int[forest.nodes()];
    }

    int size() {
        return size;
    }

    boolean has(int node) {
        return places[node] > 0;
    }

    /// One of them, in no particular order; `index` is below [#size()].
    int at(int index) {
        return members[index];
    }

    /// Resident children of a node, itself resident or not.
    int children(int node) {
        return children[node];
    }

    /// Leading blocks of a request that are resident.
    int prefix(int request) {
        int blocks = 0;
        while (blocks < forest.length(request) && has(forest.node(request, blocks))) {
            blocks++;
        }
        return blocks;
    }

    void enter(int node) {
        assert !has(node) : "node " + node + " is here";
        members[size++] = node;
        places[node] = size;
        int parent = forest.parent(node);
        if (parent != TraceForest.NONE) {
            children[parent]++;
        }
    }

    /// Returns the parent when it is resident and has no resident child now, else [TraceForest#NONE].
    int leave(int node) {
        assert has(node) : "node " + node + " is not here";
        int place = places[node] - 1;
        members[place] = members[--size];
        places[members[place]] = place + 1;
        places[node] = 0;
        int parent = forest.parent(node);
        return parent != TraceForest.NONE && --children[parent] == 0 && has(parent) ? parent : TraceForest.NONE;
    }
}
