package io.kvcache.planner.store;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TierReplay.LiveBlockCapacity;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Replays a trace through two stores in turns, one of which brings in ahead what is likely to be
/// read next: somebody asks what there is of a prompt, as a router does, and a while later the
/// engine acquires it and waits for what is on disk. Then what was missing is put and written.
///
/// Both serve each request, now one first and now the other, which waits until the first one has
/// nothing left to write or to read. Nothing else is to use the disk meanwhile.
///
/// **Ownership.** Opens its stores and closes them strictly.
public final class PrefetchReplay {

    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final Settings settings;
    private final TraceChains chains;

    /// What to run.
    ///
    /// @param hostBlocks capacity of host memory, rounded up to whole slabs
    /// @param diskBlocks that may be alive on disk
    /// @param queueNanos between a look-up and the acquire that follows it
    public record Settings(
            EvictionPolicyFactory policy, int hostBlocks, int diskBlocks, int blockBytes, long queueNanos) {}

    /// What one of the stores did.
    ///
    /// @param requests that were served
    /// @param waited requests of which something was on disk alone when they were acquired
    /// @param blocks that requests found
    /// @param wrongBlocks with other bytes than were put
    /// @param meanNanos of the times from the acquire of a request, of which something was on disk
    ///     alone when it was looked up in the store without guesses, until all its blocks were
    ///     there
    /// @param guesses blocks that were brought in ahead, used, or wasted
    /// @param wastedBytes read for nobody
    public record Result(
            int requests,
            int waited,
            long blocks,
            long wrongBlocks,
            double meanNanos,
            long medianNanos,
            long p99Nanos,
            PrefetchStats guesses,
            long wastedBytes) {}

    /// Both, and how many requests the times are of.
    public record Results(int timed, Result without, Result with) {

        /// Of the mean times, with guesses to without; not a number when nothing was timed.
        public double ratio() {
            return with.meanNanos / without.meanNanos;
        }
    }

    /// Hears of each request that both have served.
    @FunctionalInterface
    public interface ProgressListener {

        /// A request was served.
        void onServed(int request);
    }

    private static final class StoreRun {
        private final TieredKvCache cache;
        private final long[] nanos;
        private int waited;
        private long blocks;
        private long wrong;

        StoreRun(TieredKvCache cache, int requests) {
            this.cache = cache;
            nanos = new long[requests];
        }
    }

    /// @throws IllegalArgumentException when there is no block of that size
    public PrefetchReplay(PrefixForest forest, Settings settings) {
        this.settings = settings;
        chains = new TraceChains(forest, settings.blockBytes);
    }

    /// Serves the first requests.
    ///
    /// @param folder for the disks of both, in folders `without` and `with` that are not there yet
    public Results run(int requests, Path folder, ProgressListener progressListener) {
        try (TieredKvCache without = open(folder.resolve("without"), false);
                TieredKvCache with = open(folder.resolve("with"), true)) {
            StoreRun[] sides = {new StoreRun(without, requests), new StoreRun(with, requests)};
            boolean[] timed = new boolean[requests];
            for (int request = 0; request < requests; request++) {
                BlockChain chain = chains.chainOf(request);
                timed[request] = sides[0].cache.match(chain).diskBlocks() > 0;
                serve(sides[request % 2], chain, request);
                serve(sides[1 - request % 2], chain, request);
                progressListener.onServed(request);
            }
            without.validate();
            with.validate();
            return new Results(count(timed), result(sides[0], timed), result(sides[1], timed));
        }
    }

    private TieredKvCache open(Path folder, boolean prefetch) {
        long hostBytes = StoreReplay.Settings.hostBytes(settings.hostBlocks, settings.blockBytes);
        DiskOptions disk = LiveBlockCapacity.smallestDisk(folder, settings.diskBlocks, settings.blockBytes);
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(hostBytes)
                .records(Math.toIntExact(settings.diskBlocks + 2 * hostBytes / settings.blockBytes))
                .policy(settings.policy)
                .admission(AdmissionKind.ALWAYS)
                .disk(disk)
                .flushOnClose(Duration.ZERO)
                .prefetch(prefetch)
                .checkSegments(false)
                .failOnLeak(true)
                .build();
        cache.register(chains.namespace());
        return cache;
    }

    private void serve(StoreRun storeRun, BlockChain chain, int request) {
        TieredKvCache cache = storeRun.cache;
        var _ = cache.match(chain);
        LockSupport.parkNanos(settings.queueNanos);
        int here = cache.match(chain, KvCache.NO_WAIT).hostBlocks();
        long start = System.nanoTime();
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
            int ready = table.await(chain.length(), Duration.ofNanos(TIMEOUT_NANOS));
            storeRun.nanos[request] = System.nanoTime() - start;
            storeRun.waited += ready > here ? 1 : 0;
            storeRun.blocks += ready;
            storeRun.wrong += TraceChains.countWrong(table, chain, ready);
            put(cache, chain, ready);
        }
        while (!isSettled(cache)) {
            if (System.nanoTime() - start > TIMEOUT_NANOS) {
                throw new IllegalStateException("a minute has passed, and not all is written and read");
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    private static void put(TieredKvCache cache, BlockChain chain, int from) {
        for (int index = from; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return;
                }
                TraceChains.fill(chain, index, writer.segment());
                writer.seal();
            }
        }
    }

    /// Whether the disk is free for the other store: nothing is written, nothing read ahead.
    private static boolean isSettled(TieredKvCache cache) {
        DiskTierStats stats = cache.offloadStats();
        boolean written = stats.waitingBytes() == 0 && stats.writing() == 0;
        return written && cache.diskStats().stream().allMatch(disk -> disk.readsWaiting() + disk.readsUnderWay() == 0);
    }

    private static int count(boolean[] timed) {
        int count = 0;
        for (boolean each : timed) {
            count += each ? 1 : 0;
        }
        return count;
    }

    private Result result(StoreRun storeRun, boolean[] timed) {
        long[] nanos = new long[count(timed)];
        int at = 0;
        for (int request = 0; request < timed.length; request++) {
            if (timed[request]) {
                nanos[at++] = storeRun.nanos[request];
            }
        }
        Arrays.sort(nanos);
        PrefetchStats guesses = storeRun.cache.prefetchStats();
        return new Result(
                timed.length,
                storeRun.waited,
                storeRun.blocks,
                storeRun.wrong,
                Arrays.stream(nanos).average().orElse(0),
                at == 0 ? 0 : nanos[at / 2],
                at == 0 ? 0 : nanos[(int) Math.min(at - 1L, Math.round(0.99 * at))],
                guesses,
                guesses.wasted() * settings.blockBytes);
    }
}
