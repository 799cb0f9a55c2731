package io.kvcache.core.policy;

import java.util.Arrays;

/// Sums over the first places of a row of numbers, in the logarithm of its length: what stack distances are
/// counted with.
///
/// Source: Fenwick: "A new data structure for cumulative frequency tables", Software: Practice and
/// Experience 1994.
///
/// **Threads.** One at a time.
public final class FenwickTree {

    private final long[] tree;

    /// All zero.
    ///
    /// @param places numbered from 1 on, to here
    public FenwickTree(int places) {
        tree = new long[places + 1];
    }

    /// Adds to the number at a place.
    public void add(int place, long change) {
        for (int i = place; i < tree.length; i += i & -i) {
            tree[i] += change;
        }
    }

    /// The sum of the numbers up to a place, 0 for place 0.
    public long sum(int until) {
        long sum = 0;
        for (int at = until; at > 0; at -= at & -at) {
            sum += tree[at];
        }
        return sum;
    }

    /// Makes all zero.
    public void clear() {
        Arrays.fill(tree, 0);
    }
}
