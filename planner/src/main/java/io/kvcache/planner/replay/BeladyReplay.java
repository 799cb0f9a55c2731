package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Comparator;
import java.util.PriorityQueue;

/// Replays against Belady's rule, which knows the future: the bound that no policy can pass.
///
/// The victim is the block whose next request is farthest, the deepest among equals. Every use of a block is a use of
/// all blocks before it, so a parent's next use is never later than its child's, and the victim is always a leaf:
/// the rule is closed under prefixes by itself and optimal for blocks of equal size and cost. With bypass, inserting
/// stops at a block whose next use is not nearer than the victim's.
///
/// Candidates are pushed with their next use when the request that used them has ended. Until then their older
/// entry is outdated, so what a request uses is pinned without further ado.
///
/// Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 1966.
public record BeladyReplay(boolean bypass) implements SimulatedCache {

    @Override
    public String commandName() {
        return bypass ? "belady-bypass" : "belady";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new BeladyPass(forest, blocks, counter, bypass).replay();
    }

    private record Candidate(int nextUse, int depth, int node) {}

    private static final class BeladyPass {

        private static final Comparator<Candidate> FARTHEST_FIRST = Comparator.comparingInt(Candidate::nextUse)
                .thenComparingInt(Candidate::depth)
                .reversed()
                .thenComparingInt(Candidate::node);

        private final PrefixForest forest;
        private final int blocks;
        private final boolean bypass;
        private final ForestRecords records;
        private final HitCounter counter;
        private final int[][] nextUses;
        private final int[] nextUse;
        private final PriorityQueue<Candidate> candidates = new PriorityQueue<>(FARTHEST_FIRST);

        BeladyPass(PrefixForest forest, int blocks, HitCounter counter, boolean bypass) {
            this.forest = forest;
            this.blocks = blocks;
            this.bypass = bypass;
            records = new ForestRecords(forest);
            this.counter = counter;
            nextUses = forest.nextUses();
            nextUse = new int[forest.nodeCount()];
        }

        HitTotals replay() {
            for (int request = 0; request < forest.requestCount(); request++) {
                serve(request);
            }
            return counter.totals();
        }

        private void serve(int request) {
            int found = records.residentPrefix(request);
            int resident = found;
            counter.onRequest(request, found);
            for (int i = 0; i < forest.storedBlocks(request); i++) {
                nextUse[forest.node(request, i)] = nextUses[request][i];
            }
            while (resident < forest.storedBlocks(request) && makeRoom(nextUses[request][resident])) {
                records.add(forest.node(request, resident++));
            }
            for (int i = 0; i < resident; i++) {
                int node = forest.node(request, i);
                candidates.add(new Candidate(nextUse[node], forest.depth(node), node));
            }
            counter.onServed(request, resident - found, records.size());
        }

        /// @param nextUseOfNew when the block that wants room is used again
        private boolean makeRoom(int nextUseOfNew) {
            if (records.size() < blocks) {
                return true;
            }
            dropStale();
            Candidate victim = candidates.peek();
            if (victim == null || (bypass && nextUseOfNew >= victim.nextUse)) {
                return false;
            }
            candidates.remove();
            records.remove(victim.node);
            return true;
        }

        private void dropStale() {
            Candidate top = candidates.peek();
            while (top != null && (!records.isResident(top.node) || nextUse[top.node] != top.nextUse)) {
                candidates.remove();
                top = candidates.peek();
            }
        }
    }
}
