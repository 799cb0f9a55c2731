package io.kvcache.planner.lab;

import io.kvcache.planner.lab.StateReplay.StatePolicy.StateCost;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Replays a trace for a model that has recurrent states beside KV, with one LRU memory for both.
///
/// A prompt resumes behind the last of its leading blocks that has a state: KV alone does not resume it. The
/// prompt's new blocks are put with the states that a [StatePolicy] keeps. States count as used before blocks,
/// and later blocks before earlier ones, so that what is nearer to the root stays longer. A state goes with its
/// block.
public final class StateReplay {

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
    public ResultRow run(StatePolicy policy, long capacityBytes) {
        LruMemory memory = new LruMemory(policy, capacityBytes);
        long prompts = 0;
        long resumed = 0;
        long found = 0;
        for (int request = 0; request < forest.requestCount(); request++) {
            int foundBlocks = memory.foundBlocks(request);
            int resumedBlocks = memory.resumedBlocks(request, foundBlocks);
            memory.put(request, foundBlocks, resumedBlocks);
            prompts += trace.requests().get(request).inputTokens();
            found += (long) foundBlocks * forest.blockTokens();
            resumed += (long) resumedBlocks * forest.blockTokens();
        }
        return new ResultRow()
                .put("trace", trace.name())
                .put("states", policy.name())
                .put("capacityBytes", capacityBytes)
                .put("tokenHitRatio", (double) resumed / prompts)
                .put("kvTokenHitRatio", (double) found / prompts)
                .put("statesPut", memory.statesPut);
    }

    /// Blocks under twice their node's number, states under one more; the least recently used first.
    private final class LruMemory {

        private final LinkedHashMap<Integer, Long> entries = new LinkedHashMap<>(1 << 12, 0.75f, true);
        private final StatePolicy policy;
        private final long capacityBytes;
        private long usedBytes;
        private long statesPut;

        LruMemory(StatePolicy policy, long capacityBytes) {
            this.policy = policy;
            this.capacityBytes = capacityBytes;
        }

        private int blockKey(int request, int block) {
            return 2 * forest.node(request, block);
        }

        private int stateKey(int request, int block) {
            return blockKey(request, block) + 1;
        }

        int foundBlocks(int request) {
            int found = 0;
            while (found < forest.lookupBlocks(request) && entries.containsKey(blockKey(request, found))) {
                found++;
            }
            return found;
        }

        int resumedBlocks(int request, int foundBlocks) {
            int resumed = foundBlocks;
            while (hasStates() && resumed > 0 && !entries.containsKey(stateKey(request, resumed - 1))) {
                resumed--;
            }
            return resumed;
        }

        private boolean hasStates() {
            return policy.cost() == StateCost.ITS_OWN;
        }

        void put(int request, int foundBlocks, int resumedBlocks) {
            int stored = forest.storedBlocks(request);
            if (hasStates()) {
                if (resumedBlocks > 0) {
                    entries.get(stateKey(request, resumedBlocks - 1));
                }
                for (int block = stored - 1; block >= resumedBlocks; block--) {
                    if (policy.keeps(block, stored, foundBlocks, forest.blockTokens())) {
                        statesPut += add(stateKey(request, block), stateBytes) ? 1 : 0;
                    }
                }
            }
            long bytes = blockBytes + (policy.cost() == StateCost.PART_OF_BLOCK ? stateBytes : 0);
            for (int block = stored - 1; block >= 0; block--) {
                add(blockKey(request, block), bytes);
            }
            evict();
        }

        /// @return whether it was not there
        private boolean add(int key, long bytes) {
            boolean isNew = entries.put(key, bytes) == null;
            usedBytes += isNew ? bytes : 0;
            return isNew;
        }

        private void evict() {
            List<Integer> orphans = new ArrayList<>();
            Iterator<Map.Entry<Integer, Long>> oldest = entries.entrySet().iterator();
            while (usedBytes > capacityBytes && oldest.hasNext()) {
                Map.Entry<Integer, Long> entry = oldest.next();
                usedBytes -= entry.getValue();
                if (entry.getKey() % 2 == 0) {
                    orphans.add(entry.getKey() + 1);
                }
                oldest.remove();
            }
            for (int state : orphans) {
                Long bytes = entries.remove(state);
                usedBytes -= bytes == null ? 0 : bytes;
            }
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
