package io.kvcache.bench.crash;

import io.kvcache.bench.store.DeviceLogSilencer;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;

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
        DeviceLogSilencer.silence();
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
}
