package io.kvcache.bench.replay;

import io.kvcache.bench.baseline.S3Fifo;
import io.kvcache.bench.replay.HitCounter.HitTotals;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.PolicyState;
import java.util.function.IntPredicate;

/// Replays against one of the store's own policies.
///
/// @param lookAhead how many of the next requests are known, as a server knows those that wait; 0 without
///     hints
public record PolicyReplay(EvictionPolicyFactory kind, int lookAhead) implements SimulatedCache {

    /// Without hints.
    public PolicyReplay(EvictionPolicyFactory kind) {
        this(kind, 0);
    }

    @Override
    public String commandName() {
        return kind.commandName() + (lookAhead > 0 ? "+" + lookAhead : "");
    }

    @Override
    public String title() {
        return kind.title() + (lookAhead > 0 ? ", the next " + lookAhead + " requests known" : "");
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        ForestRecords records = new ForestRecords(forest);
        PolicyState state = new PolicyState(records.capacity(), ghosts(kind, records.capacity(), blocks));
        PolicyRun.PolicyCache cache = new PolicyRun.PolicyCache(records, state, kind.create(records, state), blocks);
        return new PolicyRun(forest, cache, kind.usesAnnouncements(), lookAhead).replay(counter);
    }

    /// Evicted keys to remember. Frequency counts cover the whole trace, as the convention asks;
    /// S3-FIFO's ghosts are as many as the cache has blocks, as its paper says. Importance has a memory
    /// of its own.
    private static int ghosts(EvictionPolicyFactory kind, int nodes, int blocks) {
        return kind instanceof S3Fifo.Factory ? Math.min(nodes, blocks) : nodes;
    }

    /// One pass of a trace over one policy instance.
    ///
    /// With look-ahead, each request is hinted once, when it comes into sight: a policy that looks ahead is
    /// told of all its blocks, for another those that are resident count as used then, as the store does.
    static final class PolicyRun {

        private final PrefixForest forest;
        private final PolicyCache cache;
        private final boolean byBlock;
        private final int lookAhead;
        /// The last request that each node was part of: its claim is refused while that request is served.
        private final int[] pinnedBy;

        private int inSight;

        /// The policy and what is around it.
        ///
        /// @param blocks capacity
        record PolicyCache(ForestRecords records, PolicyState state, EvictionPolicy policy, int blocks) {

            void touch(PrefixForest forest, int request, int hits) {
                int last = policy.touchesAncestors() ? 0 : hits - 1;
                for (int i = hits - 1; i >= Math.max(0, last); i--) {
                    policy.touch(forest.node(request, i));
                }
            }

            /// The [NoveltyClass] of what a request puts.
            ///
            /// @param hits leading blocks that are here
            int cohort(PrefixForest forest, int request, int hits) {
                int known = hits;
                while (known < forest.storedBlocks(request)
                        && policy.hasGhost(records.fingerprint(forest.node(request, known)))) {
                    known++;
                }
                return NoveltyClass.of(Math.max(0, forest.inputTokens(request) - (long) known * forest.blockTokens()));
            }

            private boolean makeRoom(IntPredicate claim, HitCounter counter) {
                if (records.size() < blocks) {
                    return true;
                }
                int victim = policy.evict(claim);
                if (victim == EvictionPolicy.NONE) {
                    return false;
                }
                counter.onEvicted(victim);
                int exposed = records.remove(victim);
                if (exposed != ForestRecords.NONE) {
                    policy.onBecameLeaf(exposed);
                }
                return true;
            }
        }

        /// @param byBlock whether the policy is told of each block of a request in sight
        /// @param lookAhead requests in sight
        PolicyRun(PrefixForest forest, PolicyCache cache, boolean byBlock, int lookAhead) {
            this.forest = forest;
            this.cache = cache;
            this.byBlock = byBlock;
            this.lookAhead = lookAhead;
            pinnedBy = new int[forest.nodeCount()];
        }

        /// @param counter told of every request
        HitTotals replay(HitCounter counter) {
            for (int request = 0; request < forest.requestCount(); request++) {
                int sight = Math.min(request + lookAhead, forest.requestCount() - 1);
                for (; lookAhead > 0 && inSight <= sight; inSight++) {
                    announce(inSight);
                }
                counter.onRequest(request, cache.records.residentPrefix(request));
                counter.onServed(request, serve(request, counter), cache.records.size());
            }
            return counter.totals();
        }

        /// Returns how many blocks were put.
        private int serve(int request, HitCounter counter) {
            int hits = cache.records.residentPrefix(request);
            int pin = request + 1;
            for (int i = 0; i < forest.storedBlocks(request); i++) {
                pinnedBy[forest.node(request, i)] = pin;
            }
            cache.touch(forest, request, hits);
            IntPredicate claim = node -> pinnedBy[node] != pin;
            int cohort = cache.cohort(forest, request, hits);
            int end = hits;
            while (end < forest.storedBlocks(request)
                    && !isDeclined(request, end, cohort)
                    && cache.makeRoom(claim, counter)) {
                int node = forest.node(request, end++);
                cache.records.cohort(node, cohort);
                cache.records.add(node);
                cache.policy.admit(node);
            }
            return end - hits;
        }

        /// Returns whether the policy has the request put no more from a block on. It is told of what is declined
        /// then.
        private boolean isDeclined(int request, int block, int cohort) {
            int end = forest.storedBlocks(request);
            if (cache.records.size() < cache.blocks
                    || cache.policy.admits(cache.records.fingerprint(forest.node(request, block)), cohort)) {
                return false;
            }
            for (int i = end - 1; i >= block; i--) {
                cache.policy.onDeclined(cache.records.fingerprint(forest.node(request, i)), cohort, i == end - 1);
            }
            return true;
        }

        private void announce(int request) {
            int resident = cache.records.residentPrefix(request);
            if (!byBlock) {
                cache.touch(forest, request, resident);
                return;
            }
            for (int i = 0; i < forest.storedBlocks(request); i++) {
                int node = forest.node(request, i);
                cache.policy.announce(cache.records.fingerprint(node));
                if (i < resident) {
                    cache.policy.expect(node);
                }
            }
        }
    }
}
