package io.kvcache.planner.store;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.Median;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import java.util.function.IntConsumer;
import org.HdrHistogram.Histogram;

/// Replays a trace through the embedded store: match, acquire, copy out and verify, then put what was missing.
///
/// A block's bytes are a pure function of its key, so whatever comes back can be checked to the last byte. The
/// store has exactly as many records as the capacity has blocks, so that hits compare with the metadata-only
/// replay.
///
/// **Ownership.** Opens its own store and closes it strictly: a table left open is an error.
public final class StoreReplay {

    private final PrefixForest forest;
    private final Settings settings;
    private final HitCounter counter;
    private final Histogram lookupNanos = new Histogram(3);
    private long copyNanos;
    private long bytesServed;
    private long bytesStored;
    private long blocksServed;
    private long wrongBlocks;

    /// The settings of a replay.
    ///
    /// @param blocks capacity
    /// @param blockBytes real bytes of a block
    public record Settings(EvictionPolicyFactory policy, int blocks, int blockBytes, int warmup) {

        /// Host memory that it takes, a multiple of 32 MiB.
        public long hostBytes() {
            return hostBytes(blocks, blockBytes);
        }

        /// Host memory for so many blocks, a multiple of 32 MiB.
        static long hostBytes(int blocks, int blockBytes) {
            long bytes = SlabPool.MIN_BYTES;
            while (SlabPool.slotsIn(bytes, blockBytes) < blocks) {
                bytes += SlabPool.MAX_SLAB_BYTES;
            }
            return bytes;
        }
    }

    /// @param forest built by either rule
    public StoreReplay(PrefixForest forest, Settings settings) {
        this.forest = forest;
        this.settings = settings;
        counter = new HitCounter(forest, settings.warmup());
    }

    /// Runs the whole trace.
    ///
    /// @param progress is told the number of requests served, now and then
    public StoreReplayResult run(IntConsumer progress) {
        TraceChains chains = new TraceChains(forest, settings.blockBytes());
        long start = System.nanoTime();
        CacheStats stats;
        try (TieredKvCache cache = open();
                Arena arena = Arena.ofConfined()) {
            cache.register(chains.namespace());
            MemorySegment out = arena.allocate(settings.blockBytes(), 4096);
            for (int request = 0; request < forest.requestCount(); request++) {
                serve(cache, chains.chainOf(request), request, out);
                if ((request & 0xff) == 0) {
                    progress.accept(request);
                }
            }
            cache.validate();
            stats = cache.stats();
        }
        return new StoreReplayResult(
                counter.totals(),
                new StoreReplayResult.BytesMoved(bytesServed, bytesStored, copyNanos),
                new StoreReplayResult.Check(blocksServed, wrongBlocks, stats.openTables()),
                lookupNanos,
                (System.nanoTime() - start) / 1e9);
    }

    private TieredKvCache open() {
        return TieredKvCache.builder()
                .hostBytes(settings.hostBytes())
                .records(settings.blocks())
                .policy(settings.policy())
                .checkSegments(false)
                .failOnLeak(true)
                .build();
    }

    private void serve(TieredKvCache cache, BlockChain chain, int request, MemorySegment out) {
        if (chain.length() == 0) {
            counter.onRequest(request, 0);
            return;
        }
        long start = System.nanoTime();
        int matched = cache.match(chain).blocks();
        lookupNanos.recordValue((System.nanoTime() - start) / chain.length());
        try (BlockTable table = cache.acquire(chain)) {
            int ready = table.readyBlocks();
            if (ready != matched) {
                throw new IllegalStateException("matched " + matched + " blocks and acquired " + ready);
            }
            counter.onRequest(request, ready);
            for (int i = 0; i < ready; i++) {
                copyAndVerify(table, chain, i, out);
            }
            putMissing(cache, chain, ready);
        }
    }

    private void copyAndVerify(BlockTable table, BlockChain chain, int index, MemorySegment out) {
        long start = System.nanoTime();
        table.copyTo(index, out);
        copyNanos += System.nanoTime() - start;
        bytesServed += out.byteSize();
        blocksServed++;
        wrongBlocks += TraceChains.matches(chain, index, out) ? 0 : 1;
    }

    private void putMissing(TieredKvCache cache, BlockChain chain, int from) {
        for (int i = from; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return;
                }
                TraceChains.fill(chain, i, writer.segment());
                writer.seal();
                bytesStored += settings.blockBytes();
            }
        }
    }

    /// The result of a replay through the real store.
    ///
    /// @param totals hits, counted as in the metadata-only replay
    /// @param lookupNanos of each request's match, divided by the blocks of its chain
    /// @param seconds of everything: making the contents, storing, serving, verifying
    public record StoreReplayResult(
            HitTotals totals, BytesMoved bytes, Check check, Histogram lookupNanos, double seconds) {

        /// The bytes moved.
        ///
        /// @param copyNanos time spent copying served blocks out of the store
        public record BytesMoved(long served, long stored, long copyNanos) {

            /// Speed at which blocks were copied out.
            public double gigabytesPerSecond() {
                return copyNanos == 0 ? 0 : (double) served / copyNanos;
            }
        }

        /// The result of the checks.
        ///
        /// @param blocksServed blocks copied out and compared byte for byte
        /// @param wrongBlocks of those, different from what was put
        /// @param leaked tables that were open at the end
        public record Check(long blocksServed, long wrongBlocks, long leaked) {

            public boolean passed() {
                return wrongBlocks == 0 && leaked == 0;
            }
        }
    }

    private static final long COPY_POOL_BYTES = 256L << 20;
    private static final int COPY_ROUNDS = 5;
    private static final long COPY_SEED = 42;

    /// How fast this machine copies memory right now, the limit of serving from host memory: blocks from
    /// random places of a pool larger than the caches into one buffer. Median over a few rounds, in gigabytes
    /// (10^9 bytes) a second.
    ///
    /// @param blockBytes size of each copy
    public static double copyGigabytesPerSecond(int blockBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pool = arena.allocate(Math.max(COPY_POOL_BYTES, 4L * blockBytes), 4096);
            MemorySegment out = arena.allocate(blockBytes, 4096);
            pool.fill((byte) 1);
            Random random = new Random(COPY_SEED);
            double[] speeds = new double[COPY_ROUNDS];
            copyRound(pool, out, random);
            for (int i = 0; i < COPY_ROUNDS; i++) {
                speeds[i] = copyRound(pool, out, random);
            }
            return Median.of(speeds);
        }
    }

    private static double copyRound(MemorySegment pool, MemorySegment out, Random random) {
        int blocks = (int) (pool.byteSize() / out.byteSize());
        long nanos = 0;
        for (int i = 0; i < blocks; i++) {
            long from = random.nextInt(blocks) * out.byteSize();
            long start = System.nanoTime();
            MemorySegment.copy(pool, from, out, 0, out.byteSize());
            nanos += System.nanoTime() - start;
        }
        return (double) blocks * out.byteSize() / nanos;
    }
}
