package io.kvcache.bench.replay;

import java.util.Arrays;

/// Numbers the nodes (parent node, hash id) of a prefix tree in the order of their appearance.
///
/// An open-addressed table of node numbers; a probe compares with the node's own parent and id. Boxed keys would take
/// longer than the replay itself.
final class NodeIndex {

    private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

    private int[] table = new int[1 << 10];
    private int[] parents = new int[1 << 9];
    private long[] ids = new long[1 << 9];
    private int count;

    NodeIndex() {
        Arrays.fill(table, -1);
    }

    int nodeCount() {
        return count;
    }

    int[] parents() {
        return Arrays.copyOf(parents, count);
    }

    /// The node's number; a new one when it was not seen before.
    int numberOf(int parent, long id) {
        int place = place(parent, id);
        if (table[place] < 0) {
            if (count == parents.length) {
                grow();
                place = place(parent, id);
            }
            parents[count] = parent;
            ids[count] = id;
            table[place] = count++;
        }
        return table[place];
    }

    private int place(int parent, long id) {
        long mixed = (id * HASH_MULTIPLIER + parent) * HASH_MULTIPLIER;
        int place = (int) (mixed >>> 32) & (table.length - 1);
        while (table[place] >= 0 && (parents[table[place]] != parent || ids[table[place]] != id)) {
            place = (place + 1) & (table.length - 1);
        }
        return place;
    }

    private void grow() {
        parents = Arrays.copyOf(parents, 2 * count);
        ids = Arrays.copyOf(ids, 2 * count);
        table = new int[4 * count];
        Arrays.fill(table, -1);
        for (int node = 0; node < count; node++) {
            table[place(parents[node], ids[node])] = node;
        }
    }
}
