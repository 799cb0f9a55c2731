package io.kvcache.planner.replay;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.planner.baseline.S3Fifo;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntPredicate;

/// Replays against one of the store's own policies.
///
/// @param lookAhead how many of the next requests are known, as a server knows those that wait; 0 without
///     hints
/// @param onePerSession whether these end before the first whose session has one that is not served yet, as where
///     clients wait for their answers before they go on
public record PolicyReplay(EvictionPolicyFactory kind, int lookAhead, boolean onePerSession) implements SimulatedCache {

    /// Without hints.
    public PolicyReplay(EvictionPolicyFactory kind) {
        this(kind, 0);
    }

    /// With all of the next requests known.
    public PolicyReplay(EvictionPolicyFactory kind, int lookAhead) {
        this(kind, lookAhead, false);
    }

    @Override
    public String commandName() {
        return kind.commandName() + (lookAhead > 0 ? "+" + lookAhead : "") + (onePerSession ? "s" : "");
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        ForestRecords records = new ForestRecords(forest);
        PolicyState state = new PolicyState(records.capacity(), ghosts(kind, records.capacity(), blocks));
        PolicyRun.PolicyCache cache = new PolicyRun.PolicyCache(records, state, kind.create(records, state), blocks);
        LookAhead sight = onePerSession ? LookAhead.onePerSession(forest, lookAhead) : LookAhead.all(lookAhead);
        return new PolicyRun(forest, cache, kind.usesAnnouncements(), sight).replay(counter);
    }

    /// Evicted keys to remember. Frequency counts cover the whole trace, as the convention asks;
    /// S3-FIFO's ghosts are as many as the cache has blocks, as its paper says. Importance has a memory
    /// of its own.
    private static int ghosts(EvictionPolicyFactory kind, int nodes, int blocks) {
        return kind instanceof S3Fifo.Factory ? Math.min(nodes, blocks) : nodes;
    }

    /// Which requests are known before they are served.
    ///
    /// @param requests in sight at most
    /// @param previous the request of the same session before each, -1 for none; empty when sessions do not matter
    @SuppressWarnings("ArrayRecordComponent") // of the replay's
    record LookAhead(int requests, int[] previous) {

        /// Every request in sight.
        static LookAhead all(int requests) {
            return new LookAhead(requests, new int[0]);
        }

        /// Where a client waits for its answer before it goes on, a queue ends before the first request whose session
        /// has another that is not served yet: had one behind that one come, it would be served earlier.
        static LookAhead onePerSession(PrefixForest forest, int requests) {
            long[] sessions = forest.sessions();
            int[] previous = new int[sessions.length];
            Map<Long, Integer> last = new HashMap<>();
            for (int request = 0; request < sessions.length; request++) {
                Integer before = last.put(sessions[request], request);
                previous[request] = before == null ? -1 : before;
            }
            return new LookAhead(requests, previous);
        }

        /// Returns whether a request can wait while another is served.
        boolean isKnown(int request, int served) {
            return requests > 0
                    && request <= (long) served + requests
                    && (previous.length == 0 || previous[request] < served);
        }
    }

    /// One pass of a trace over one policy instance.
    ///
    /// With look-ahead, each request is hinted once, when it comes into sight: a policy that looks ahead is
    /// told of all its blocks, for another those that are resident count as used then, as the store does.
    static final class PolicyRun {

        private final PrefixForest forest;
        private final PolicyCache cache;
        private final boolean byBlock;
        private final LookAhead lookAhead;
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
        PolicyRun(PrefixForest forest, PolicyCache cache, boolean byBlock, LookAhead lookAhead) {
            this.forest = forest;
            this.cache = cache;
            this.byBlock = byBlock;
            this.lookAhead = lookAhead;
            pinnedBy = new int[forest.nodeCount()];
        }

        /// @param counter told of every request
        HitTotals replay(HitCounter counter) {
            for (int request = 0; request < forest.requestCount(); request++) {
                while (inSight < forest.requestCount() && lookAhead.isKnown(inSight, request)) {
                    announce(inSight++);
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
                    && !isDeclined(request, end, cohort, counter)
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
        private boolean isDeclined(int request, int block, int cohort, HitCounter counter) {
            int end = forest.storedBlocks(request);
            if (cache.records.size() < cache.blocks
                    || cache.policy.admits(cache.records.fingerprint(forest.node(request, block)), cohort)) {
                return false;
            }
            counter.onDeclined(request, end - block);
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
