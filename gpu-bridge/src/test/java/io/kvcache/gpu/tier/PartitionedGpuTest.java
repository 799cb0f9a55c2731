package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.tiers.TieredKvCache;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Two disks and one GPU, which is shared out: each part has a driver of its own, and all of the store's
/// memory to tell it of.
final class PartitionedGpuTest {

    private static final long DISK_BYTES = 256L << 20;
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(2, 2, 64, 16, Dtype.BF16));
    private static final int BLOCKS = 100;
    private static final int MAX_ATTEMPTS = 16;
    private static final int DAMAGED = 83;
    private static final long PART_BYTES = 32L << 20;

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    PartitionedGpuTest() {}

    @Test
    void givenAGpuInFrontOfTwoDisks_whenTheStoreOpensAndCloses_thenItsMemoryIsRegisteredOnce() {
        FakeCuda fakeCuda = FakeCuda.reset();
        assumeThat(fakeCuda.canHold()).as("a driver that counts calls").isTrue();
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .tier(CudaTier.withDriver("a GPU", fakeCuda::open, 64 << 20))
                .disk(folder.resolve("a"), DISK_BYTES)
                .disk(folder.resolve("b"), DISK_BYTES)
                .build();
        assertThat(fakeCuda.calls("cuDevicePrimaryCtxRetain")).isEqualTo(2);
        assertThat(fakeCuda.calls("cuMemHostRegister_v2")).isEqualTo(1);
        assertThat(fakeCuda.calls("cuMemHostUnregister")).isZero();
        cache.close();
        assertThat(fakeCuda.calls("cuMemHostUnregister")).isEqualTo(1);
        assertThat(fakeCuda.left()).isEmpty();
    }

    private static DeviceBlockTable verified(CudaTier gpu, BlockChain chain) throws Exception {
        return gpu.acquireVerified(chain, 1).toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    @Test
    void givenAChainOnBothParts_whenTheDeviceLooks_thenWhatIsDamagedEndsItWhereverTheRestLies() throws Exception {
        FakeCuda fakeCuda = FakeCuda.reset();
        CudaTier gpu = CudaTier.withDriver("a GPU", fakeCuda::open, 64 << 20);
        BlockChain chain;
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(gpu)
                .disk(folder.resolve("a"), DISK_BYTES)
                .disk(folder.resolve("b"), DISK_BYTES)
                .build()) {
            cache.register(SPACE);
            chain = putOnBothParts(cache, gpu);
            DeviceSpan damaged;
            try (DeviceBlockTable table = verified(gpu, chain)) {
                assertThat(table.firstBlock()).isEqualTo(1);
                assertThat(table.endBlock()).isEqualTo(BLOCKS);
                damaged = table.span(DAMAGED);
            }
            overwrite(fakeCuda.open(), damaged);
            try (DeviceBlockTable table = verified(gpu, chain)) {
                assertThat(table.endBlock()).isEqualTo(DAMAGED);
            }
            try (DeviceBlockTable table = gpu.acquire(chain, 0)) {
                assertThat(table.endBlock()).as("nobody finds it").isEqualTo(DAMAGED);
            }
        }
        assertThat(fakeCuda.left()).isEmpty();
        try (DeviceBlockTable table = verified(gpu, chain)) {
            assertThat(table.endBlock()).as("of a store that is closed").isEqualTo(1);
        }
    }

    /// The parts take blocks by turns of their own threads, so all of one chain may go to one of them: then another
    /// chain is put.
    private static BlockChain putOnBothParts(TieredKvCache cache, CudaTier gpu) {
        BlockChain chain;
        int tokens = BLOCKS * SPACE.blockTokens();
        int attempts = 0;
        do {
            chain = BlockChain.of(
                    SPACE,
                    IntStream.range(attempts * tokens, (attempts + 1) * tokens).toArray());
            put(cache, chain);
            assertThat(cache.flush(Duration.ofSeconds(60))).isTrue();
            attempts++;
        } while (onParts(gpu, chain) < 2 && attempts < MAX_ATTEMPTS);
        assertThat(onParts(gpu, chain)).as("parts that have some of it").isEqualTo(2);
        return chain;
    }

    private static void put(TieredKvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
    }

    /// Parts have a slab of 32 MiB each, apart from each other.
    private static long onParts(CudaTier gpu, BlockChain chain) {
        try (DeviceBlockTable table = gpu.acquire(chain, 0)) {
            long first = table.address(0).value();
            return IntStream.range(0, table.endBlock())
                    .mapToObj(i -> Math.abs(table.address(i).value() - first) < PART_BYTES / 2)
                    .distinct()
                    .count();
        }
    }

    private static void overwrite(DeviceDriver driver, DeviceSpan span) {
        driver.adopt(span);
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent done = driver.openEvent()) {
            stream.fill(span.slice(span.bytes() - 1, 1), (byte) 0x3C);
            stream.record(done);
            assertThat(done.await(TimeUnit.SECONDS.toNanos(60))).isTrue();
        }
        driver.disown(span);
        driver.close();
    }
}
