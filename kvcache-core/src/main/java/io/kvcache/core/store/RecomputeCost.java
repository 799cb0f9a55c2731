package io.kvcache.core.store;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;

/// What computing a block again takes, beside what it takes for the mean of those that are put.
///
/// A token looks back at all before it, so the farther into its prompt a block lies the more it takes, and it takes
/// twice as much as a first block's behind [PrefillCost#doublingTokens]. Blocks of several models count as equally
/// dear at equal parts of that. Nothing is known of objects: they take the mean.
///
/// **Threads.** Owned by the store's lock.
final class RecomputeCost {

    /// Until somebody knows: Llama 3 8B, of which a token takes two operations for each of 8 billion parameters,
    /// and half a million for each token that it looks back at.
    private static final double DOUBLING_TOKENS = 30_600;

    /// Puts over which the mean is taken.
    private static final int MEAN_OF = 1 << 14;

    private final RecordPool pool;
    private final NamespaceRegistry namespaceRegistry;
    private double doublingTokens = DOUBLING_TOKENS;
    private double mean = 1;
    private long puts;

    RecomputeCost(RecordPool pool, NamespaceRegistry namespaceRegistry) {
        this.pool = pool;
        this.namespaceRegistry = namespaceRegistry;
    }

    /// Goes by what an engine takes from now on.
    void setPrefillCost(PrefillCost prefill) {
        doublingTokens = prefill.doublingTokens();
        puts = 0;
    }

    /// A record was put.
    void onPut(int record) {
        if (!RecordFlags.isObject(pool.flags(record))) {
            puts = Math.min(MEAN_OF, puts + 1);
            mean += (cost(record) - mean) / puts;
        }
    }

    /// What a record takes in units of the mean, above 0.
    double relativeCost(int record) {
        return RecordFlags.isObject(pool.flags(record)) ? 1 : cost(record) / mean;
    }

    /// In units of what the first block of its prompt takes.
    private double cost(int record) {
        int namespace = RecordFlags.namespaceId(pool.flags(record));
        double tokens = namespaceRegistry.byId(namespace).namespace().blockTokens();
        return 1 + (pool.depth(record) + 0.5) * tokens / doublingTokens;
    }
}
