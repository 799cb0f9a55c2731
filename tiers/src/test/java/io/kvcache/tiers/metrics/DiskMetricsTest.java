package io.kvcache.tiers.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DiskMetricsTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 128, 4, Dtype.BF16));

    @Test
    void givenAFlushedBlock_whenRead_thenTheDiskHasIt(@TempDir Path folder) {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .disk(folder.resolve("disk"), 16 << 20)
                .build()) {
            SimpleMeterRegistry registry = new SimpleMeterRegistry();
            cache.register(SPACE);
            new DiskMetrics(cache, "kv").bindTo(registry);
            try (var writer = cache.put(BlockChain.of(SPACE, new int[] {1, 2, 3, 4}), 0, 0, KvCache.NO_WAIT)) {
                writer.segment().fill((byte) 1);
                writer.seal();
            }
            assertThat(cache.flush(Duration.ofMinutes(1))).isTrue();
            assertThat(registry.get("kv.disk.serving").tag("disk", "0").gauge().value())
                    .isEqualTo(1);
            assertThat(registry.get("kv.disk.alive").gauge().value()).isEqualTo(4096);
            assertThat(registry.get("kv.offload")
                            .tag("outcome", "written")
                            .functionCounter()
                            .count())
                    .isEqualTo(1);
        }
    }

    @Test
    void givenAValueTooLargeForTheDisk_whenPut_thenItIsCountedAsThat(@TempDir Path folder) {
        Namespace things = Namespace.objects("things", "t");
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 16 << 20)
                .build()) {
            cache.register(things);
            cache.storeObject(things, new byte[] {1}, MemorySegment.ofArray(new byte[4 << 20]), KvCache.NO_WAIT);
            cache.storeObject(things, new byte[] {2}, MemorySegment.ofArray(new byte[4 << 10]), KvCache.NO_WAIT);
            assertThat(cache.offloadStats().tooLarge()).isEqualTo(1);
            assertThat(cache.offloadStats().admitted()).isEqualTo(1);
            SimpleMeterRegistry registry = new SimpleMeterRegistry();
            new DiskMetrics(cache, "kv").bindTo(registry);
            assertThat(registry.get("kv.offload")
                            .tag("outcome", "too_large")
                            .functionCounter()
                            .count())
                    .isEqualTo(1);
        }
    }
}
