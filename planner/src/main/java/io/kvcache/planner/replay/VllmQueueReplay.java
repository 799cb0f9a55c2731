package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Arrays;

/// Replays against vLLM's queue of free blocks.
///
/// All blocks that no request uses are in one queue. A request takes the blocks that it finds out of it,
/// wherever they are, and new ones from its head, whose content is forgotten then. When it has ended its
/// blocks are appended, the last first, so that tails go before heads.
///
/// With requests that run one after another that is LRU, which a test shows. Blocks that decoding fills
/// are left out: a trace does not say what they hold. A prompt that is longer than the pool, which vLLM
/// refuses, is cached as far as it fits, as by the other policies here.
///
/// Source: vLLM, design document "Automatic prefix caching" of its version 1.
record VllmQueueReplay() implements SimulatedCache {

    @Override
    public String commandName() {
        return "vllm-queue";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new BlockPool(forest, blocks).replay(counter);
    }

    private static final class BlockPool {

        private static final int NONE = -1;

        private final PrefixForest forest;
        /// Node whose keys and values a block of the pool holds.
        private final int[] nodeOf;

        private final int[] blockOf;
        /// The queue, as a ring through one more entry, which is its end.
        private final int[] next;

        private final int[] previous;
        private final int end;
        private int held;

        BlockPool(PrefixForest forest, int blocks) {
            this.forest = forest;
            end = blocks;
            nodeOf = filled(blocks);
            blockOf = filled(forest.nodeCount());
            next = new int[blocks + 1];
            previous = new int[blocks + 1];
            next[end] = end;
            previous[end] = end;
            for (int block = 0; block < blocks; block++) {
                append(block);
            }
        }

        private static int[] filled(int length) {
            int[] array = new int[length];
            Arrays.fill(array, NONE);
            return array;
        }

        HitTotals replay(HitCounter counter) {
            for (int request = 0; request < forest.requestCount(); request++) {
                serve(request, counter);
            }
            return counter.totals();
        }

        private void serve(int request, HitCounter counter) {
            int used = 0;
            while (used < forest.storedBlocks(request) && blockOf[forest.node(request, used)] != NONE) {
                take(blockOf[forest.node(request, used++)]);
            }
            int found = used;
            counter.onRequest(request, found);
            while (used < forest.storedBlocks(request) && next[end] != end) {
                fill(next[end], forest.node(request, used++));
            }
            for (int i = used - 1; i >= 0; i--) {
                append(blockOf[forest.node(request, i)]);
            }
            counter.onServed(request, used - found, held);
        }

        private void fill(int block, int node) {
            take(block);
            if (nodeOf[block] == NONE) {
                held++;
            } else {
                blockOf[nodeOf[block]] = NONE;
            }
            nodeOf[block] = node;
            blockOf[node] = block;
        }

        private void take(int block) {
            next[previous[block]] = next[block];
            previous[next[block]] = previous[block];
        }

        private void append(int block) {
            previous[block] = previous[end];
            next[block] = end;
            next[previous[end]] = block;
            previous[end] = block;
        }
    }
}
