package io.kvcache.bench.disk;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.jmh.BenchChains;
import io.kvcache.bench.jmh.SyntheticKv;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// When the layers of a chain come from a disk of a known speed: in steps of two layers, beside whole blocks in
/// order.
///
/// Two chains take turns, of which host memory holds one.
public final class LayerSuite {

    private static final int LAYERS = 32;
    private static final int LAYERS_A_STEP = 2;
    private static final int BLOCK_BYTES = 2 << 20;
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    /// A layer of 64 KiB: Llama-3-8B at 16 tokens a block.
    private static final Namespace SPACE = Namespace.of("layers", BlockShape.kv(LAYERS, 8, 128, 16, Dtype.BF16));

    private static final int BLOCKS = 64;
    private static final long SLOW = 300_000_000;
    private static final long FAST = 3_000_000_000L;
    private static final int ROUNDS = 3;
    private static final Map<String, Scale> SCALES = new LinkedHashMap<>();

    static {
        SCALES.put("plain", new Scale(BLOCKS, false, SLOW, 1));
        SCALES.put("coded", new Scale(BLOCKS, true, SLOW, 1));
        SCALES.put("plain-fast", new Scale(BLOCKS, false, FAST, 5));
        SCALES.put("coded-fast", new Scale(BLOCKS, true, FAST, 5));
    }

    private LayerSuite() {}

    public static Suite suite() {
        List<String> names = SCALES.keySet().stream()
                .flatMap(name -> Stream.of("first-" + name, "whole-" + name))
                .toList();
        return new Suite("layers", "blocks from disk layer by layer", names, List.of(), LayerSuite::measure);
    }

    private static List<Figure> measure(Suite.Run run) {
        List<Figure> figures = new ArrayList<>();
        SCALES.forEach((name, scale) -> {
            if (run.wants("first-" + name) || run.wants("whole-" + name)) {
                run.progress().accept(name);
                List<Round> rounds = measure(scale, scale.rounds * run.rounds(ROUNDS));
                figures.add(Figure.of("first-" + name, "ms", rounds, Round::firstStep, "whole blocks", Round::whole));
                figures.add(Figure.of("whole-" + name, "ms", rounds, Round::lastStep, "whole blocks", Round::whole));
            }
        });
        return figures.stream().filter(figure -> run.wants(figure.name())).toList();
    }

    /// How much is moved, and how fast.
    ///
    /// @param blocks of a chain, of 2 MiB
    /// @param rounds in each round of the suite: more where they are short
    private record Scale(int blocks, boolean coded, long bytesPerSecond, int rounds) {

        /// Bytes of host memory: of one chain.
        long hostBytes() {
            return (long) blocks * BLOCK_BYTES;
        }

        /// Bytes of the device: of both chains, and as much in reserve.
        long deviceBytes() {
            return Math.max(128L << 20, 4L * blocks * BLOCK_BYTES);
        }
    }

    /// The milliseconds of a round.
    ///
    /// @param firstStep until all blocks have their first two layers
    /// @param lastStep until they have all
    /// @param whole the same, of blocks that come whole, one after another
    private record Round(double firstStep, double lastStep, double whole) {}

    /// Measures so many rounds.
    private static List<Round> measure(Scale scale, int rounds) {
        ExecutorService coders = Executors.newSingleThreadExecutor();
        try (Arena arena = Arena.ofShared();
                TieredKvCache cache = open(arena, scale, coders)) {
            List<BlockChain> chains = Stream.of("a", "b")
                    .map(name -> BenchChains.named(SPACE, name, scale.blocks))
                    .toList();
            fill(cache, chains, arena);
            readWhole(cache, chains.getFirst());
            return IntStream.range(0, rounds)
                    .mapToObj(_ -> round(cache, chains))
                    .toList();
        } finally {
            coders.shutdown();
        }
    }

    private static TieredKvCache open(Arena arena, Scale scale, ExecutorService coders) {
        MemorySegment storage = arena.allocate(scale.deviceBytes(), 4096);
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(scale.hostBytes())
                .checkSegments(false)
                .policy(PolicyKind.LRU)
                .admission(AdmissionKind.ALWAYS)
                .tier(new ThrottledTier(storage, coders, scale.coded, scale.bytesPerSecond))
                .flushOnClose(Duration.ZERO)
                .build();
        cache.register(SPACE);
        return cache;
    }

    private static void fill(TieredKvCache cache, List<BlockChain> chains, Arena arena) {
        MemorySegment content = arena.allocate(BLOCK_BYTES, 4096);
        SyntheticKv.fill(content, Content.STRUCTURED, 8, 16, 128);
        for (BlockChain chain : chains) {
            for (int block = 0; block < chain.length(); block++) {
                try (BlockWriter writer = cache.put(chain, block, 0, TIMEOUT)) {
                    writer.segment().copyFrom(content);
                    writer.seal();
                }
            }
            if (!cache.flush(TIMEOUT)) {
                throw new IllegalStateException("the disk does not become durable");
            }
        }
    }

    /// The first chain is in host memory before and after.
    private static Round round(TieredKvCache cache, List<BlockChain> chains) {
        double whole = readWhole(cache, chains.getLast());
        long start = System.nanoTime();
        try (BlockTable table = cache.acquireByLayers(chains.getFirst(), 0, TIMEOUT, LAYERS_A_STEP)) {
            table.awaitLayers(LAYERS_A_STEP, TIMEOUT);
            double first = millisSince(start);
            requireAll(table, chains.getFirst());
            return new Round(first, millisSince(start), whole);
        }
    }

    private static double readWhole(TieredKvCache cache, BlockChain chain) {
        long start = System.nanoTime();
        try (BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
            requireAll(table, chain);
            return millisSince(start);
        }
    }

    private static void requireAll(BlockTable table, BlockChain chain) {
        if (table.await(chain.length(), TIMEOUT) != chain.length()) {
            throw new IllegalStateException(table.readyBlocks() + " of " + chain.length() + " blocks came");
        }
    }

    private static double millisSince(long start) {
        return (System.nanoTime() - start) / 1e6;
    }
}
