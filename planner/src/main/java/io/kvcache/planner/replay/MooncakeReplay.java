package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Comparator;
import java.util.stream.IntStream;

/// Replays against Mooncake's store: the oldest lease goes first, in batches.
///
/// A read gives a block a lease of ten seconds; a block that was put has one that has just ended. When
/// more than nine tenths of the room are taken, blocks whose lease has ended are evicted, the longest
/// ended first: a twentieth of them, and as much more as the nine tenths are exceeded. So a tenth of the
/// room is hardly used, and what goes was often not the next in need.
///
/// It knows nothing of trees: it may keep a block without those before it, which then is not found.
/// Leases that end together, as those of one prompt's blocks, are told apart by a hash, as there by the
/// order of its tables. Its eviction wakes each 10 ms, here at each put. When all is leased, nothing is
/// put. Without time stamps in a trace all leases end together.
///
/// Source: Mooncake, `mooncake-store/src/master_service.cpp` and its deployment guide, with their defaults.
public record MooncakeReplay() implements SimulatedCache {

    private static final long LEASE_MILLIS = 10_000;
    private static final double WATERMARK = 0.90;
    private static final double BATCH = 0.05;

    @Override
    public String commandName() {
        return "mooncake";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new LeaseStore(forest, blocks).replay(counter);
    }

    private static final class LeaseStore {

        private static final int SPREAD = 0x9E3779B9;

        private final PrefixForest forest;
        private final int blocks;
        private final ResidentSet residentSet;
        private final long[] leaseEnds;

        LeaseStore(PrefixForest forest, int blocks) {
            this.forest = forest;
            this.blocks = blocks;
            residentSet = new ResidentSet(forest);
            leaseEnds = new long[forest.nodeCount()];
        }

        HitTotals replay(HitCounter counter) {
            for (int request = 0; request < forest.requestCount(); request++) {
                int hits = residentSet.prefixLength(request);
                counter.onRequest(request, hits);
                long now = forest.arrivalMillis(request);
                for (int i = 0; i < hits; i++) {
                    leaseEnds[forest.node(request, i)] = now + LEASE_MILLIS;
                }
                int put = 0;
                for (int i = hits; i < forest.storedBlocks(request); i++) {
                    put += put(forest.node(request, i), now) ? 1 : 0;
                }
                counter.onServed(request, put, residentSet.size());
            }
            return counter.totals();
        }

        private boolean put(int node, long now) {
            if (residentSet.size() > WATERMARK * blocks || residentSet.size() == blocks) {
                evict(now);
            }
            if (residentSet.contains(node) || residentSet.size() >= blocks) {
                return false;
            }
            residentSet.add(node);
            leaseEnds[node] = now;
            return true;
        }

        private void evict(long now) {
            int[] ended = IntStream.range(0, residentSet.size())
                    .map(residentSet::get)
                    .filter(node -> leaseEnds[node] <= now)
                    .toArray();
            double beyond = (double) residentSet.size() / blocks - WATERMARK;
            int victims = (int) Math.ceil(ended.length * Math.max(BATCH, beyond + BATCH));
            IntStream.of(ended)
                    .boxed()
                    .sorted(Comparator.comparingLong((Integer node) -> leaseEnds[node])
                            .thenComparingInt(node -> node * SPREAD))
                    .limit(victims)
                    .forEach(residentSet::remove);
        }
    }
}
