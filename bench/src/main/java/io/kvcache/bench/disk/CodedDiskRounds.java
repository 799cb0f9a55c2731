package io.kvcache.bench.disk;

import io.kvcache.bench.jmh.BenchChains;
import io.kvcache.bench.jmh.SyntheticKv;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierStats;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/// What a store gains whose disk of 300 MB/s holds coded blocks, beside one whose disk holds them as they are: blocks
/// acquired a second, and the time of a put while the disk writes.
///
/// Both stores are open at once and take turns.
public final class CodedDiskRounds {

    private static final long DISK_BYTES_PER_SECOND = 300_000_000;
    private static final int BLOCK_BYTES = 2 << 20;

    /// So few that nothing is reclaimed in as many rounds as there are.
    private static final int PUTS = 24;

    /// At 200 MB/s, so that the disk of either keeps up.
    private static final long PUT_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Namespace SPACE =
            Namespace.of("coded", BlockShape.kv(4, 8, 128, BLOCK_BYTES / (4 * 8 * 128 * 2 * 2), Dtype.BF16));

    private CodedDiskRounds() {}

    /// How much is moved.
    ///
    /// @param chains together three times what host memory holds
    public record Scale(long hostBytes, long deviceBytes, int chains, int chainBlocks) {

        /// For figures that go into a document.
        public static final Scale FULL = new Scale(64L << 20, 768L << 20, 12, 8);

        /// Two seconds and half a gibibyte.
        public static final Scale SMALL = new Scale(32L << 20, 224L << 20, 10, 4);
    }

    /// The figures of a round.
    ///
    /// @param onboardPlain GB/s of plain bytes, and the other from the disk that codes
    /// @param putPlain median microseconds, and the other above the disk that codes
    /// @param storedShare bytes on the disk that codes, by plain bytes
    public record Round(
            double onboardPlain, double onboardCoded, double putPlain, double putCoded, double storedShare) {}

    /// Measures so many rounds.
    public static List<Round> measure(Scale scale, int rounds) {
        try (Arena arena = Arena.ofShared();
                Store plain = new Store(arena, scale, false);
                Store coded = new Store(arena, scale, true)) {
            plain.fill();
            coded.fill();
            plain.onboard();
            coded.onboard();
            return IntStream.range(0, rounds)
                    .mapToObj(_ ->
                            new Round(plain.onboard(), coded.onboard(), plain.put(), coded.put(), coded.storedShare()))
                    .toList();
        }
    }

    private static final class Store implements AutoCloseable {

        private final ExecutorService coders = Executors.newSingleThreadExecutor();
        private final Scale scale;
        private final MemorySegment content;
        private final TieredKvCache cache;
        private final List<BlockChain> chains = new ArrayList<>();
        private int putChains;

        Store(Arena arena, Scale scale, boolean coded) {
            this.scale = scale;
            content = arena.allocate(BLOCK_BYTES, 4096);
            SyntheticKv.fill(content, Content.STRUCTURED, 8, 64, 128);
            MemorySegment storage = arena.allocate(scale.deviceBytes, 4096);
            cache = TieredKvCache.builder()
                    .hostBytes(scale.hostBytes)
                    .checkSegments(false)
                    .admission(AdmissionKind.ALWAYS)
                    .tier(new ThrottledTier(storage, coders, coded, DISK_BYTES_PER_SECOND))
                    .flushOnClose(Duration.ZERO)
                    .build();
            cache.register(SPACE);
            for (int i = 0; i < scale.chains; i++) {
                chains.add(chain("chain-" + i));
            }
        }

        private BlockChain chain(String name) {
            return BenchChains.named(SPACE, name, scale.chainBlocks);
        }

        private void put(BlockChain chain, int block) {
            try (BlockWriter writer = cache.put(chain, block, 0, TIMEOUT)) {
                writer.segment().copyFrom(content);
                writer.seal();
            }
        }

        /// Flushes after each chain, so that each is on the disk.
        void fill() {
            for (BlockChain chain : chains) {
                for (int block = 0; block < scale.chainBlocks; block++) {
                    put(chain, block);
                }
                if (!cache.flush(TIMEOUT)) {
                    throw new IllegalStateException("the disk does not become durable");
                }
            }
        }

        /// Acquires all chains, which together are three times what host memory holds.
        ///
        /// @return GB/s of plain bytes
        double onboard() {
            long start = System.nanoTime();
            BlockTable ahead = cache.acquire(chains.getFirst(), 0, TIMEOUT);
            for (BlockChain chain : chains.subList(1, scale.chains)) {
                BlockTable after = cache.acquire(chain, 0, TIMEOUT);
                finish(ahead);
                ahead = after;
            }
            finish(ahead);
            return (double) scale.chains * scale.chainBlocks * BLOCK_BYTES / (System.nanoTime() - start);
        }

        private void finish(BlockTable table) {
            try (table) {
                if (table.await(scale.chainBlocks, TIMEOUT) != scale.chainBlocks) {
                    throw new IllegalStateException(
                            table.readyBlocks() + " of " + scale.chainBlocks + " blocks came: " + cache.diskStats());
                }
            }
        }

        /// Puts new blocks, paced, and drops them.
        ///
        /// @return median microseconds
        double put() {
            double[] micros = new double[PUTS];
            List<BlockChain> fresh = new ArrayList<>();
            long due = System.nanoTime();
            for (int i = 0; i < PUTS; i++) {
                if (i % scale.chainBlocks == 0) {
                    fresh.add(chain("put-" + putChains++));
                }
                long start = System.nanoTime();
                put(fresh.getLast(), i % scale.chainBlocks);
                micros[i] = (System.nanoTime() - start) / 1e3;
                due += PUT_INTERVAL_NANOS;
                while (System.nanoTime() < due) {
                    Thread.onSpinWait();
                }
            }
            fresh.forEach(chain -> cache.drop(chain, 0));
            Arrays.sort(micros);
            return micros[PUTS / 2];
        }

        double storedShare() {
            TierStats.Coding coding = cache.diskStats().getFirst().tier().coding();
            return (double) coding.storedBytes() / coding.plainBytes();
        }

        @Override
        public void close() {
            cache.close();
            coders.shutdown();
        }
    }
}
