package io.kvcache.planner.lab;

import io.kvcache.planner.lab.StatePolicy.StateCost;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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

    /// One policy at one capacity. The fields' names are what programs rely on.
    ///
    /// @param states the policy's name
    /// @param tokenHitRatio of all prompt tokens, those behind which a prompt resumed
    /// @param kvTokenHitRatio those whose KV was there, with a state or without
    /// @param statesPut how often a state was kept anew
    public record StateRow(
            String trace,
            String states,
            long capacityBytes,
            double tokenHitRatio,
            double kvTokenHitRatio,
            long statesPut) {}

    /// The smallest capacity that can hold anything: a block and a state.
    public long minCapacityBytes() {
        return blockBytes + stateBytes;
    }

    /// Replays all requests.
    ///
    /// @param capacityBytes of blocks and states together, at least [#minCapacityBytes]
    public StateRow run(StatePolicy policy, long capacityBytes) {
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
        return new StateRow(
                trace.name(),
                policy.name(),
                capacityBytes,
                (double) resumed / prompts,
                (double) found / prompts,
                memory.statesPut);
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
}
