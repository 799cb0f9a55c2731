package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A tier takes memory of the device and gives it back while a store uses it.
final class ResizeTest {

    /// Out of memory, and code that ran where it may not.
    static final List<Integer> CODES = List.of(2, 700).subList(0, Repetitions.usualOrFull(1, 2));

    private static final long MIB = 1 << 20;
    private static final long REGION = 6 * MIB;
    private static final long LEAST = 6 * REGION;
    private static final long MOST = 16 * REGION;
    private static final Duration LONG = Duration.ofSeconds(60);

    /// Blocks of 256 KiB.
    private static final Namespace SPACE = Namespace.of("resize", BlockShape.kv(4, 8, 128, 16, Dtype.BF16));

    private static final int BLOCK_BYTES = 256 << 10;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, LEAST, MOST);

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    ResizeTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
    }

    private TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(32 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(tier);
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(seed * 100_000, seed * 100_000 + 16 * blocks).toArray());
    }

    private static void put(TieredKvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, LONG)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    continue;
                }
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
    }

    /// Reads what is there, and every byte of it.
    private static int verify(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain, 0, LONG)) {
            int ready = table.await(table.endBlock(), LONG);
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return ready;
        }
    }

    private int onDevice(BlockChain chain) {
        try (DeviceBlockMap map = tier.acquireEach(chain, 0, chain.length())) {
            return (int)
                    IntStream.range(0, chain.length()).filter(map::contains).count();
        }
    }

    private int onDevice(int fromSeed, int toSeed) {
        return IntStream.rangeClosed(fromSeed, toSeed)
                .map(seed -> onDevice(chain(seed, 50)))
                .sum();
    }

    private static void until(BooleanSupplier so) {
        long since = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - since).as("nanoseconds").isLessThan(TimeUnit.SECONDS.toNanos(60));
            Pause.briefly();
        }
    }

    private static long free(DeviceDriver driver) {
        return driver.freeMemoryBytes();
    }

    /// A GPU that is shared by others may have less or more meanwhile.
    private void requireFree(DeviceDriver driver, long expected) {
        assertThat(free(driver)).isCloseTo(expected, within(fakeCuda.canHold() ? 0 : REGION - 1));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenATier_whenResized_thenTheDeviceHasItsMemoryBackAndBlocksAreRight(boolean hasDisk) {
        TieredKvCacheBuilder builder = hasDisk ? builder().disk(folder, 256 * MIB) : builder();
        try (DeviceDriver other = fakeCuda.open();
                TieredKvCache cache = builder.build()) {
            cache.register(SPACE);
            until(() -> tier.bytes() == LEAST);
            long atFirst = free(other);
            assertThat(tier.resize(MOST, LONG)).isEqualTo(MOST);
            requireFree(other, atFirst - (MOST - LEAST));
            for (int seed = 1; seed <= 4; seed++) {
                put(cache, chain(seed, 50)); // 50 MiB in all
            }
            cache.flush(LONG);
            until(() -> onDevice(1, 4) > 120);
            assertThat(tier.resize(8 * REGION + 5, LONG)).isEqualTo(8 * REGION);
            requireFree(other, atFirst - 2 * REGION);
            assertThat(tier.resize(LEAST, LONG)).isEqualTo(LEAST);
            requireFree(other, atFirst);
            assertThat(onDevice(1, 4)).isLessThan(150);
            for (int seed = 1; seed <= 4; seed++) {
                assertThat(verify(cache, chain(seed, 50))).isBetween(hasDisk ? 50 : 0, 50);
            }
            cache.validate();
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    void givenLoad_whenResizedAtRandom_thenNoWrongByteAndNothingStays(long seed) {
        Random random = new Random(seed);
        try (DeviceDriver other = fakeCuda.open();
                TieredKvCache cache = builder().build()) {
            cache.register(SPACE);
            until(() -> tier.bytes() == LEAST);
            long atFirst = free(other);
            for (int step = 0; step < 60; step++) {
                put(cache, chain(random.nextInt(12), 1 + random.nextInt(40)));
                verify(cache, chain(random.nextInt(12), 40));
                if (step % 4 == 0) {
                    long wanted = LEAST + REGION * random.nextInt(11);
                    assertThat(tier.resize(wanted, LONG)).isEqualTo(wanted);
                    requireFree(other, atFirst - (wanted - LEAST));
                }
            }
            cache.validate();
        }
    }

    @Test
    void givenAHeldBlock_whenTheTierShrinks_thenItIsWaitedFor() {
        try (DeviceDriver other = fakeCuda.open();
                TieredKvCache cache = builder().build()) {
            cache.register(SPACE);
            until(() -> tier.bytes() == LEAST);
            assertThat(tier.resize(MOST, LONG)).isEqualTo(MOST);
            BlockChain chain = chain(1, 100);
            put(cache, chain);
            until(() -> onDevice(chain) == 100);
            long before = free(other);
            DeviceSpan held;
            try (DeviceBlockTable table = tier.acquire(chain, 0)) {
                held = table.span(50);
                // All regions that were written are pinned, and those that were not are given back.
                assertThat(tier.resize(LEAST, Duration.ofMillis(200))).isBetween(LEAST, MOST - REGION);
                assertThat(table.span(50)).isEqualTo(held);
                assertThat(free(other)).isGreaterThan(before);
            }
            assertThat(tier.resize(LEAST, LONG)).isEqualTo(LEAST);
            cache.validate();
        }
    }

    @Test
    void givenADeviceWithoutMemory_whenTheTierGrows_thenItTakesWhatThereIs() {
        assumeThat(fakeCuda.canHold()).as("a device whose memory can be chosen").isTrue();
        fakeCuda.memory(64 * MIB);
        try (TieredKvCache cache = builder().build()) {
            cache.register(SPACE);
            until(() -> tier.bytes() == LEAST);
            long bytes = tier.resize(MOST, LONG);
            assertThat(bytes).isBetween(LEAST + REGION, 64 * MIB);
            put(cache, chain(1, 60));
            assertThat(verify(cache, chain(1, 60))).isEqualTo(60);
        }
    }

    @Test
    void givenSizesThatItDoesNotTake_whenAsked_thenTheyAreRefusedWithTheRange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CudaTier.open(0, 1 << 20, 96 * MIB))
                .withMessage("a device tier of 1048576 bytes that grows to 100663296; it takes 33554432 and up, and"
                        + " 37748736 bytes and up to begin with");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> tier.resize(MOST + 1, LONG))
                .withMessage("100663297 bytes for a device tier; it takes 37748736 to 100663296");
        assertThat(tier.resize(LEAST, LONG)).as("before the store is built").isZero();
        CudaTier fixed = CudaTier.withDriver("GPU", fakeCuda::open, 16 * MIB);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> fixed.resize(8 * MIB, LONG))
                .withMessage("8388608 bytes for a device tier; it takes 16777216 to 16777216");
    }

    @ParameterizedTest
    @FieldSource("CODES")
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenResized_thenNeverAWrongByteNorALeak(int code) throws Exception {
        FaultInjection.inject(fakeCuda, "resizing tier", code, 20, (nth, begin) -> {
            try (TieredKvCache cache = builder().build()) {
                cache.register(SPACE);
                until(() -> tier.bytes() == LEAST);
                begin.run();
                boolean grew = tier.resize(9 * REGION, LONG) == 9 * REGION;
                put(cache, chain(1, 30));
                boolean shrank = tier.resize(LEAST, LONG) == LEAST;
                verify(cache, chain(1, 30));
                cache.validate();
                return grew && shrank;
            }
        });
    }
}
