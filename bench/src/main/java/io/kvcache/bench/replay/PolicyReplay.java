package io.kvcache.bench.replay;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import java.util.function.IntPredicate;

/// Replays against one of the store's own policies.
public record PolicyReplay(PolicyKind kind) implements Replay {

    @Override
    public String commandName() {
        return kind.commandName();
    }

    @Override
    public String title() {
        return kind.title();
    }

    @Override
    public HitTotals run(TraceForest forest, int blocks, int warmup) {
        return new Run(forest, blocks, warmup, kind).all();
    }

    /// Evicted keys to remember. Frequency counts cover the whole trace, as the convention asks; S3-FIFO's ghosts are
    /// as many as the cache has blocks, as its paper says.
    private static int ghosts(PolicyKind kind, int nodes, int blocks) {
        return kind == PolicyKind.S3_FIFO ? Math.min(nodes, blocks) : nodes;
    }

    private static final class Run {

        private final TraceForest forest;
        private final int blocks;
        private final ForestRecords records;
        private final EvictionPolicy policy;
        private final HitCounter counter;
        /// The last request that each node was part of: its claim is refused while that request is served.
        private final int[] pinnedBy;

        Run(TraceForest forest, int blocks, int warmup, PolicyKind kind) {
            this.forest = forest;
            this.blocks = blocks;
            records = new ForestRecords(forest);
            PolicyState state = new PolicyState(records.capacity(), ghosts(kind, records.capacity(), blocks));
            policy = kind.create(records, state);
            counter = new HitCounter(forest, warmup);
            pinnedBy = new int[forest.nodes()];
        }

        HitTotals all() {
            for (int request = 0; request < forest.requests(); request++) {
                serve(request);
            }
            return counter.totals();
        }

        private void serve(int request) {
            int hits = records.residentPrefix(request);
            counter.count(request, hits);
            int pin = request + 1;
            for (int i = 0; i < forest.length(request); i++) {
                pinnedBy[forest.node(request, i)] = pin;
            }
            touch(request, hits);
            IntPredicate claim = node -> pinnedBy[node] != pin;
            for (int i = hits; i < forest.length(request) && makeRoom(claim); i++) {
                int node = forest.node(request, i);
                records.enter(node);
                policy.admit(node);
            }
        }

        private void touch(int request, int hits) {
            int last = policy.touchesAncestors() ? 0 : hits - 1;
            for (int i = hits - 1; i >= Math.max(0, last); i--) {
                policy.touch(forest.node(request, i));
            }
        }

        private boolean makeRoom(IntPredicate claim) {
            if (records.size() < blocks) {
                return true;
            }
            int victim = policy.evict(claim);
            if (victim == EvictionPolicy.NONE) {
                return false;
            }
            int exposed = records.leave(victim);
            if (exposed != ForestRecords.NONE) {
                policy.exposed(exposed);
            }
            return true;
        }
    }
}
