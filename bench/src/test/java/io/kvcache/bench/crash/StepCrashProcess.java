package io.kvcache.bench.crash;

import io.kvcache.bench.crash.CrashTestRunner.CrashDir;
import io.kvcache.bench.crash.StepCrashProcess.CrashStep;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/// A process that takes the steps of a seed in a directory until it is killed.
///
/// It prints `begin N` before each step and `flushed N` after each flush that succeeded.
public final class StepCrashProcess {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final TieredKvCache cache;
    private final TestContent testContent;

    private StepCrashProcess(TieredKvCache cache, TestContent testContent) {
        this.cache = cache;
        this.testContent = testContent;
    }

    /// Takes all steps, and then waits for its end.
    ///
    /// @param arguments directory and bytes of the tier, and a seed
    public static void main(String... arguments) throws IOException {
        TierReplay.silenceTiers();
        CrashDir site = CrashDir.of(arguments[0], Long.parseLong(arguments[1]));
        long seed = Long.parseLong(arguments[2]);
        try (TieredKvCache cache = site.open()) {
            StepCrashProcess victim = new StepCrashProcess(cache, new TestContent(seed));
            CrashStep.generate(seed).forEach(victim::runStep);
            System.in.read();
        }
    }

    private void runStep(CrashStep step) {
        printLine("begin " + step.number());
        switch (step.kind()) {
            case PUT_CHAIN -> put(testContent.chain(step.target(), step.size()));
            case DROP_CHAIN -> drop(step);
            case PUT_OBJECT -> putObject(step);
            case DROP_OBJECT -> cache.dropObject(TestContent.OBJECTS, testContent.objectKey(step.target()));
            case FLUSH -> flush(step);
        }
    }

    private void put(BlockChain chain) {
        for (int i = 0; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, TIMEOUT)) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    TestContent.fill(chain, i, writer.segment());
                    writer.seal();
                } else if (!writer.outcome().allowsNextBlock()) {
                    throw new IllegalStateException("a block was not taken: " + writer.outcome());
                }
            }
        }
    }

    private void drop(CrashStep step) {
        BlockChain chain = testContent.chain(step.target(), step.size() + 1);
        if (step.size() > 0) {
            cache.drop(chain, step.size());
        }
    }

    private void putObject(CrashStep step) {
        MemorySegment bytes = MemorySegment.ofArray(new byte[step.size()]);
        testContent.object(step).fill(bytes);
        byte[] key = testContent.objectKey(step.target());
        try (ObjectWriter writer = cache.putObject(TestContent.OBJECTS, key, step.size(), TIMEOUT)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                throw new IllegalStateException("an object was not taken: " + writer.outcome());
            }
            writer.copyFrom(bytes);
            writer.seal();
        }
    }

    private void flush(CrashStep step) {
        if (cache.flush(TIMEOUT)) {
            printLine("flushed " + step.number());
        }
    }

    private static void printLine(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /// One step of a process that is killed sooner or later. The seed determines the steps, so the checker computes
    /// from the seed which blocks and objects the disk may hold afterwards.
    ///
    /// @param number from 0
    /// @param target chain or object
    /// @param size blocks of the chain, bytes of the object, or the block from which on a chain is dropped
    record CrashStep(int number, Kind kind, int target, int size) {

        private static final int STEPS = 150;
        private static final int OBJECTS = 12;
        private static final int MAX_BLOCKS = 12;
        private static final int MAX_OBJECT_BYTES = 200_000;

        enum Kind {
            PUT_CHAIN,
            DROP_CHAIN,
            PUT_OBJECT,
            DROP_OBJECT,
            FLUSH
        }

        /// The steps of a seed: chains are put once and dropped once at most, objects over and over.
        static List<CrashStep> generate(long seed) {
            SplittableRandom random = new SplittableRandom(seed);
            List<CrashStep> steps = new ArrayList<>();
            List<CrashStep> chains = new ArrayList<>();
            int nextChain = 0;
            for (int number = 0; number < STEPS; number++) {
                int dice = random.nextInt(100);
                CrashStep step;
                if (dice < 45) {
                    step = new CrashStep(number, Kind.PUT_CHAIN, nextChain++, 1 + random.nextInt(MAX_BLOCKS));
                    chains.add(step);
                } else if (dice < 53 && !chains.isEmpty()) {
                    CrashStep dropped = chains.remove(random.nextInt(chains.size()));
                    step = new CrashStep(number, Kind.DROP_CHAIN, dropped.target, random.nextInt(dropped.size));
                } else if (dice < 80) {
                    int bytes = 1 + random.nextInt(1 + random.nextInt(MAX_OBJECT_BYTES));
                    step = new CrashStep(number, Kind.PUT_OBJECT, random.nextInt(OBJECTS), bytes);
                } else if (dice < 85) {
                    step = new CrashStep(number, Kind.DROP_OBJECT, random.nextInt(OBJECTS), 0);
                } else {
                    step = new CrashStep(number, Kind.FLUSH, 0, 0);
                }
                steps.add(step);
            }
            return List.copyOf(steps);
        }
    }

    /// The names and the bytes of a seed's chains and objects.
    record TestContent(long seed) {

        /// Blocks of 16 KiB.
        static final Namespace BLOCKS = Namespace.of("crash", BlockShape.kv(1, 8, 32, 16, Dtype.BF16));

        static final Namespace OBJECTS = Namespace.objects("crash-objects", "crash");

        private static final int BLOCK_TOKENS = 16;

        /// All chains of a seed have their first block in common, as prompts have.
        BlockChain chain(int target, int blocks) {
            int[] tokens = IntStream.range(0, blocks * BLOCK_TOKENS)
                    .map(at -> at < BLOCK_TOKENS ? Long.hashCode(seed) : 31 * target + at)
                    .toArray();
            return BlockChain.of(BLOCKS, tokens);
        }

        static void fill(BlockChain chain, int index, MemorySegment slot) {
            BlockContent.of(chain.keyHi(index), chain.keyLo(index)).fill(slot);
        }

        static boolean matches(BlockChain chain, int index, MemorySegment slot) {
            return BlockContent.of(chain.keyHi(index), chain.keyLo(index)).mismatch(slot) < 0;
        }

        byte[] objectKey(int target) {
            return (seed + "/" + target).getBytes(StandardCharsets.US_ASCII);
        }

        /// The bytes that a step gives an object.
        BlockContent object(CrashStep put) {
            return BlockContent.of(seed, put.target()).withVersion(put.number());
        }
    }
}
