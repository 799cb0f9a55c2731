package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntToLongFunction;

/// Greedy dual size frequency (GDSF) with the prefill work of a block as its cost, leaves only:
/// [DynamicAgingPolicy] with this weight of a use.
///
/// Priority = L + uses × cost / bytes, set when a block is used. To compute the block at depth d again takes
/// `2·P·B + A·B·(d + ½)·B` floating-point operations: the weights once a token, and attention over everything
/// before it, so the cost is linear in the depth:
///
/// ```
/// cost(d) ∝ 1 + (d + ½) / crossoverBlocks,   crossoverBlocks = (2·P / A) / B
/// ```
///
/// with P active parameters, A = 4 · heads · headDim · layers and B tokens a block. The crossover is the context at
/// which attention costs as much as the weights: 30,600 tokens for Llama-3-8B, 60 blocks of 512 tokens.
///
/// Source: Cherkasova: "Improving WWW proxies performance with greedy-dual-size-frequency caching policy", HP Labs
/// 1998; cost in the manner of RAGCache (Jin et al., 2024). Deviation: leaf only, counts outlive an eviction, and
/// the cost is a formula, not a profile.
final class GdsfDepthCost implements IntToLongFunction {

    /// The crossover of Llama-3-8B in blocks of 512 tokens.
    private static final double CROSSOVER_BLOCKS = 60;

    /// Fixed-point scale of the weight: depth counts in steps of a 64th of the first block's cost.
    private static final int WEIGHT_SCALE = 64;

    private final RecordView records;
    /// Bytes of the first record that came. Sizes count relative to it, so that the fixed-point weight needs no
    /// unit.
    private long referenceBytes;

    private GdsfDepthCost(RecordView records) {
        this.records = records;
    }

    /// What one use of a record is worth.
    @Override
    public long applyAsLong(int record) {
        long bytes = Math.max(1, records.bytes(record));
        referenceBytes = referenceBytes == 0 ? bytes : referenceBytes;
        double cost = 1 + (records.depth(record) + 0.5) / CROSSOVER_BLOCKS;
        return Math.max(1, Math.round(WEIGHT_SCALE * cost / ((double) bytes / referenceBytes)));
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "gdsf";
        }

        @Override
        public String title() {
            return "GDSF, cost = prefill work at depth";
        }

        @Override
        public String source() {
            return "Cherkasova, HP Labs 1998";
        }

        @Override
        public int queueCount() {
            return 1;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new DynamicAgingPolicy(records, state, new GdsfDepthCost(records));
        }
    }
}
