package io.kvcache.tiers.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics.CardinalityLimit;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class KvCacheMetricsTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 1, 128, 4, Dtype.BF16);

    private final TieredKvCache cache =
            TieredKvCache.builder().hostBytes(32 << 20).build();
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    @AfterEach
    void close() {
        cache.close();
    }

    @Test
    void givenHitsAndMisses_whenRead_thenTheyAreCountedByNamespace() {
        Namespace space = Namespace.of("m", SHAPE);
        cache.register(space);
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        BlockChain chain = BlockChain.of(space, new int[] {1, 2, 3, 4, 5, 6, 7, 8});
        try (var writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
            writer.seal();
        }
        cache.acquire(chain).close();
        assertThat(gets("m", "hit")).isEqualTo(1);
        assertThat(gets("m", "miss")).isEqualTo(1);
        assertThat(registry.get("cache.puts")
                        .tag("outcome", "reserved")
                        .functionCounter()
                        .count())
                .isEqualTo(1);
        assertThat(registry.get("kv.memory.capacity").gauge().value()).isEqualTo(32 << 20);
    }

    @Test
    void givenAPromptTwice_whenItsChainIsAsked_thenTokensAreCountedAsHashedAndFound() {
        Namespace space = Namespace.of("m", SHAPE);
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        for (int[] prompt : List.of(new int[8], new int[8], new int[11])) {
            assertThat(cache.chain(space, prompt).length()).isEqualTo(2);
        }
        assertThat(promptTokens("hashed")).isEqualTo(8);
        assertThat(promptTokens("found")).isEqualTo(16);
    }

    private double promptTokens(String result) {
        return registry.get("kv.prompt.tokens")
                .tag("result", result)
                .functionCounter()
                .count();
    }

    @Test
    void givenMoreNamespacesThanLabels_whenBound_thenTheRestAddUpUnderOther() {
        for (int i = 0; i < CardinalityLimit.MAX_LABELS + 7; i++) {
            cache.register(Namespace.of("m" + i, SHAPE));
        }
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        for (int i = CardinalityLimit.MAX_LABELS; i < CardinalityLimit.MAX_LABELS + 7; i++) {
            cache.acquire(BlockChain.of(Namespace.of("m" + i, SHAPE), new int[] {1, 2, 3, 4}))
                    .close();
        }
        assertThat(gets("other", "miss")).isEqualTo(7);
        assertThat(registry.find("cache.size").gauges()).hasSize(CardinalityLimit.MAX_LABELS + 1);
    }

    @Test
    void givenNamespaceRegisteredLater_whenMemoryIsRead_thenItAppears() {
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        cache.register(Namespace.of("late", SHAPE));
        registry.get("kv.memory.held").gauge().value();
        assertThat(gets("late", "hit")).isZero();
    }

    private double gets(String namespace, String result) {
        return registry.get("cache.gets")
                .tag("namespace", namespace)
                .tag("result", result)
                .functionCounter()
                .count();
    }

    @Test
    void givenAFlushedBlock_whenRead_thenTheDiskHasIt(@TempDir Path folder) {
        try (TieredKvCache disks = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .disk(folder.resolve("disk"), 16 << 20)
                .build()) {
            Namespace space = Namespace.of("m", SHAPE);
            disks.register(space);
            new KvCacheMetrics(disks, "kv").bindTo(registry);
            try (var writer = disks.put(BlockChain.of(space, new int[] {1, 2, 3, 4}), 0, 0, KvCache.NO_WAIT)) {
                writer.segment().fill((byte) 1);
                writer.seal();
            }
            assertThat(disks.flush(Duration.ofMinutes(1))).isTrue();
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
        try (TieredKvCache disks = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 16 << 20)
                .build()) {
            disks.register(things);
            disks.storeObject(things, new byte[] {1}, MemorySegment.ofArray(new byte[4 << 20]), KvCache.NO_WAIT);
            disks.storeObject(things, new byte[] {2}, MemorySegment.ofArray(new byte[4 << 10]), KvCache.NO_WAIT);
            assertThat(disks.offloadStats().tooLarge()).isEqualTo(1);
            assertThat(disks.offloadStats().admitted()).isEqualTo(1);
            new KvCacheMetrics(disks, "kv").bindTo(registry);
            assertThat(registry.get("kv.offload")
                            .tag("outcome", "too_large")
                            .functionCounter()
                            .count())
                    .isEqualTo(1);
        }
    }
}
