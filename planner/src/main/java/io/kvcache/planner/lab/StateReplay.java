package io.kvcache.planner.lab;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.lab.StateReplay.StatePolicy.StateCost;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.planner.trace.Trace;
import io.kvcache.tiers.TieredKvCache;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Replays a trace through the store for a model that has recurrent states beside KV: blocks with a STATE part, and
/// one host memory for both.
///
/// A prompt resumes behind the last of its leading blocks that has a state: KV alone does not resume it. The
/// prompt's new blocks are put with the states that a [StatePolicy] keeps. A state goes with its block.
///
/// Sizes are scaled down, and the store's memory is reserved and never touched: nothing reads the bytes of a block.
public final class StateReplay {

    /// Bytes of a block in the store; larger where the store would be too small.
    private static final int BLOCK_BYTES = 48 << 10;

    /// Of the store, so that it has many slabs.
    private static final long MIN_HOST_BYTES = 1L << 30;

    /// Of a block with its state, however small the store is.
    private static final long MAX_SLOT_BYTES = 64L << 20;

    private static final int FULL = 0;
    private static final int STATE = 1;
    private static final int MAX_ROW_BYTES = 65_536;

    private final Trace trace;
    private final PrefixForest forest;
    private final long blockBytes;
    private final long stateBytes;

    /// Full blocks count, as in the store.
    ///
    /// @param bytesPerToken of KV, above 0
    /// @param stateBytes of one state, above 0
    public StateReplay(Trace trace, long bytesPerToken, long stateBytes) {
        this.trace = trace;
        forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        blockBytes = trace.blockBytes(bytesPerToken);
        this.stateBytes = stateBytes;
    }

    /// The smallest capacity that can hold anything: a block and a state.
    public long minCapacityBytes() {
        return blockBytes + stateBytes;
    }

    /// Replays all requests.
    ///
    /// @param capacityBytes of blocks and states together, at least [#minCapacityBytes]
    /// @return token hit ratios of all prompt tokens: those behind which a prompt resumed, and those whose KV
    ///     was there, with a state or without; and how often a state was kept anew
    public ResultRow run(StatePolicy policy, EvictionPolicyFactory eviction, long capacityBytes) {
        double largest = MAX_SLOT_BYTES / (double) minCapacityBytes();
        double scale = Math.max(BLOCK_BYTES / (double) blockBytes, MIN_HOST_BYTES / (double) capacityBytes);
        scale = Math.min(scale, largest);
        long prompts = 0;
        long resumed = 0;
        long found = 0;
        long statesPut = 0;
        TraceChains chains = new TraceChains(forest, namespace(policy, scale));
        try (TieredKvCache cache = open(eviction, Math.round(capacityBytes * scale))) {
            cache.register(chains.namespace());
            for (int request = 0; request < forest.requestCount(); request++) {
                BlockChain chain = chains.chainOf(request);
                BlockChain lookup = chain.prefix(forest.lookupBlocks(request));
                int foundBlocks = cache.match(lookup).fullBlocks();
                int resumedBlocks;
                try (BlockTable table = cache.acquire(lookup)) {
                    resumedBlocks = table.readyBlocks();
                }
                statesPut += put(cache, policy, chain, foundBlocks, resumedBlocks);
                prompts += trace.requests().get(request).inputTokens();
                found += (long) foundBlocks * forest.blockTokens();
                resumed += (long) resumedBlocks * forest.blockTokens();
            }
        }
        return new ResultRow()
                .put("trace", trace.name())
                .put("states", policy.name())
                .put("policy", eviction.commandName())
                .put("capacityBytes", capacityBytes)
                .put("tokenHitRatio", (double) resumed / prompts)
                .put("kvTokenHitRatio", (double) found / prompts)
                .put("statesPut", statesPut);
    }

    private Namespace namespace(StatePolicy policy, double scale) {
        long full = Math.round(scale * blockBytes);
        long state = Math.round(scale * stateBytes);
        long block = policy.cost() == StateCost.PART_OF_BLOCK ? full + state : full;
        Namespace.Builder builder =
                Namespace.builder("states").part(Part.full(shape(Math.ceilDiv(block, forest.blockTokens()))));
        if (policy.cost() == StateCost.ITS_OWN) {
            builder.part(new Part(1, 0, PartKind.STATE, 0, shape(state), RopeOrigin.NONE));
        }
        return builder.build();
    }

    /// A block's shape whose tokens, or whose state, have about this size.
    private BlockShape shape(long bytes) {
        int heads = Math.toIntExact(Math.ceilDiv(bytes, MAX_ROW_BYTES));
        int rowBytes = Math.toIntExact(bytes / heads);
        return new BlockShape(1, 1, heads, rowBytes, forest.blockTokens(), Dtype.INT8, AxisOrder.LAYER_KV_HEAD_TOKEN);
    }

    private static TieredKvCache open(EvictionPolicyFactory eviction, long hostBytes) {
        return TieredKvCache.builder()
                .hostBytes(hostBytes)
                .policy(eviction)
                .prefaultInBackground(false)
                .checkSegments(false)
                .failOnLeak(true)
                .build();
    }

    /// Puts what a prompt has computed, and uses what was there of it.
    ///
    /// @return states that were put
    private int put(TieredKvCache cache, StatePolicy policy, BlockChain chain, int foundBlocks, int resumedBlocks) {
        int statesPut = 0;
        for (int block = resumedBlocks; block < chain.length(); block++) {
            if (!put(cache, chain, block, FULL).allowsNextBlock()) {
                break;
            }
            if (policy.cost() == StateCost.ITS_OWN
                    && policy.keeps(block, chain.length(), foundBlocks, forest.blockTokens())) {
                statesPut += put(cache, chain, block, STATE) == PutOutcome.RESERVED ? 1 : 0;
            }
        }
        return statesPut;
    }

    private static PutOutcome put(TieredKvCache cache, BlockChain chain, int block, int part) {
        try (BlockWriter writer = cache.put(chain, block, part, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.seal(0);
            }
            return writer.outcome();
        }
    }

    /// Where a model's recurrent states are kept along a prompt.
    ///
    /// @param name as users write it: [#FORMS]
    /// @param cost whether a state takes room of its own
    /// @param ends at the last full block of a prompt
    /// @param branches where the blocks that were found end, when no state was found there
    /// @param everyTokens also at each multiple of so many tokens, 1 for each block; 0 for none
    public record StatePolicy(String name, StateCost cost, boolean ends, boolean branches, int everyTokens) {

        /// The names that [#named] takes.
        public static final String FORMS = "bound, block, free, or ends, branches and every:TOKENS joined by +";

        /// From the simplest to the bound of all.
        public static final List<String> DEFAULTS = List.of(
                "bound",
                "block",
                "every:2048",
                "ends",
                "ends+branches",
                "ends+every:8192",
                "ends+branches+every:8192",
                "free");

        private static final int MAX_TOKENS = 1 << 20;

        /// What a state takes.
        public enum StateCost {
            /// Nothing, and each block has one: the bound of all others.
            FREE,
            /// It is part of each block, and is evicted with it.
            PART_OF_BLOCK,
            /// It is evicted before its block, or with it.
            ITS_OWN
        }

        /// Returns the policy of a name; empty if it is none.
        public static Optional<StatePolicy> named(String name) {
            return switch (name) {
                case "free" -> Optional.of(new StatePolicy(name, StateCost.FREE, false, false, 0));
                case "bound" -> Optional.of(new StatePolicy(name, StateCost.PART_OF_BLOCK, false, false, 0));
                case "block" -> Optional.of(new StatePolicy(name, StateCost.ITS_OWN, false, false, 1));
                default -> joined(name);
            };
        }

        private static Optional<StatePolicy> joined(String name) {
            Set<String> parts = new HashSet<>();
            int everyTokens = 0;
            for (String part : name.split("\\+", -1)) {
                boolean every = part.matches("every:[1-9]\\d{0,6}");
                if (every) {
                    everyTokens = Integer.parseInt(part.substring("every:".length()));
                }
                boolean known = every || part.equals("ends") || part.equals("branches");
                if (!known || !parts.add(every ? "every" : part) || everyTokens > MAX_TOKENS) {
                    return Optional.empty();
                }
            }
            return Optional.of(new StatePolicy(
                    name, StateCost.ITS_OWN, parts.contains("ends"), parts.contains("branches"), everyTokens));
        }

        /// Returns whether multiples of the tokens are ends of blocks.
        public boolean fits(int blockTokens) {
            return everyTokens <= 1 || everyTokens % blockTokens == 0;
        }

        /// Returns whether a state is kept behind a block.
        ///
        /// @param block of a prompt, from 0
        /// @param storedBlocks of the prompt
        /// @param foundBlocks leading blocks whose KV was found
        boolean keeps(int block, int storedBlocks, int foundBlocks, int blockTokens) {
            int everyBlocks = Math.max(1, everyTokens / blockTokens);
            return (ends && block == storedBlocks - 1)
                    || (branches && block == foundBlocks - 1)
                    || (everyTokens > 0 && (block + 1) % everyBlocks == 0);
        }
    }
}
