package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.gpu.cuda.StandIn;
import io.kvcache.tiers.TieredKvCache;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Two disks and one GPU, which is shared out: each part has a driver of its own, and all of the store's
/// memory to tell it of.
final class TwoPartsTest {

    private static final long DISK_BYTES = 256L << 20;

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    TwoPartsTest() {}

    @Test
    void givenAGpuInFrontOfTwoDisks_whenTheStoreOpensAndCloses_thenItsMemoryIsRegisteredOnce() {
        StandIn standIn = StandIn.fresh();
        assumeThat(standIn.holds()).as("a driver that counts calls").isTrue();
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .touched(false)
                .strict(true)
                .tier(CudaTier.over("a GPU", standIn::open, 64 << 20))
                .disk(folder.resolve("a"), DISK_BYTES)
                .disk(folder.resolve("b"), DISK_BYTES)
                .build();
        assertThat(standIn.calls("cuDevicePrimaryCtxRetain")).isEqualTo(2);
        assertThat(standIn.calls("cuMemHostRegister_v2")).isEqualTo(1);
        assertThat(standIn.calls("cuMemHostUnregister")).isZero();
        cache.close();
        assertThat(standIn.calls("cuMemHostUnregister")).isEqualTo(1);
        assertThat(standIn.left()).isEmpty();
    }
}
