package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Single blocks, named by an engine's keys.
final class EngineKeyOperationsTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);

    @TempDir
    private Path folder = Path.of("");

    private static EngineKey key(int sequence, int number) {
        return EngineKey.of(bytes(sequence, number));
    }

    private static byte[] bytes(int sequence, int number) {
        return (sequence + "/" + number).getBytes(StandardCharsets.UTF_8);
    }

    private static BlockChain chain(int sequence, int blocks) {
        return BlockChain.ofEngineKeys(
                SPACE,
                IntStream.range(0, blocks)
                        .mapToObj(number -> bytes(sequence, number))
                        .toList());
    }

    private static PutOutcome put(TieredKvCache cache, int sequence, int number) {
        EngineKey parent = number == 0 ? null : key(sequence, number - 1);
        return put(cache, key(sequence, number), parent);
    }

    private static PutOutcome put(TieredKvCache cache, EngineKey key, @Nullable EngineKey parent) {
        try (BlockWriter writer = cache.put(SPACE, key, parent, Duration.ofNanos(PATIENCE))) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockContent.of(key.toBlockKey(SPACE)).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            return writer.outcome();
        }
    }

    private static boolean isHere(TieredKvCache cache, int sequence, int number, long timeoutNanos) {
        EngineKey key = key(sequence, number);
        try (BlockTable table = cache.acquire(SPACE, key, Duration.ofNanos(timeoutNanos))) {
            int first = table.firstBlock();
            if (table.await(first + 1, Duration.ofNanos(timeoutNanos)) == first) {
                return false;
            }
            assertThat(first).isEqualTo(number);
            BlockContent.of(key.toBlockKey(SPACE)).requireEqual(table.segment(number));
            return true;
        }
    }

    @Test
    void givenBlocksPutOneByOne_whenMatchedAsAChain_thenTheyAreOne() {
        try (TieredKvCache cache =
                TieredKvCache.builder().hostBytes(64 << 20).failOnLeak(true).build()) {
            cache.register(SPACE);
            IntStream.range(0, 10)
                    .forEach(number -> assertThat(put(cache, 1, number)).isEqualTo(PutOutcome.RESERVED));
            assertThat(put(cache, 1, 4)).isEqualTo(PutOutcome.PRESENT);
            assertThat(put(cache, 2, 1)).isEqualTo(PutOutcome.NO_PARENT);
            assertThat(cache.match(chain(1, 12)).hostBlocks()).isEqualTo(10);
            try (BlockTable table = cache.acquire(chain(1, 12))) {
                assertThat(table.readyBlocks()).isEqualTo(10);
                BlockContent.of(key(1, 7).toBlockKey(SPACE)).requireEqual(table.segment(7));
            }
            assertThat(isHere(cache, 1, 9, 0)).isTrue();
            assertThat(isHere(cache, 1, 10, 0)).isFalse();
            assertThat(cache.stats().namespaces().getFirst().blocksRequested()).isEqualTo(14);
            assertThat(cache.stats().namespaces().getFirst().blocksFound()).isEqualTo(11);
            cache.validate();
        }
    }

    /// A store with three sequences of 40 blocks of 1 MiB, of which the first is on disk alone.
    private TieredKvCache withDisk() {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 600 << 20)
                .build();
        cache.register(SPACE);
        for (int sequence = 1; sequence <= 3; sequence++) {
            for (int number = 0; number < 40; number++) {
                assertThat(put(cache, sequence, number)).isEqualTo(PutOutcome.RESERVED);
            }
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
        assertThat(cache.match(chain(1, 40)).diskBlocks()).isEqualTo(40);
        return cache;
    }

    @Test
    void givenBlocksOnDiskAlone_whenAskedForByKey_thenTheyComeWithAllAboveThem() {
        try (TieredKvCache cache = withDisk()) {
            assertThat(isHere(cache, 1, 39, 0)).isFalse();
            assertThat(isHere(cache, 1, 39, PATIENCE)).isTrue();
            assertThat(cache.match(chain(1, 40)).hostBlocks()).isEqualTo(40);
            assertThat(cache.diskStats().getFirst().loaded()).isGreaterThanOrEqualTo(40);
            cache.validate();
        }
    }

    @Test
    void givenAParentOnDiskAlone_whenABlockIsPutBelowIt_thenBothAreFound() {
        try (TieredKvCache cache = withDisk()) {
            EngineKey key = key(1, 40);
            try (BlockWriter writer = cache.put(SPACE, key, key(1, 39), Duration.ofNanos(PATIENCE))) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                BlockContent.of(key.toBlockKey(SPACE)).fill(writer.segment());
                assertThat(writer.seal()).isIn(SealOutcome.SEALED, SealOutcome.PENDING);
            }
            assertThat(isHere(cache, 1, 39, PATIENCE)).isTrue();
            cache.validate(); // what came with the parent is done when the store's lock is free
            assertThat(isHere(cache, 1, 40, 0)).isTrue();
        }
    }

    @Test
    void givenKeysOnly_whenMadeAChain_thenItIsMatchedAndNamesNoEnginesHash() {
        BlockChain chain = chain(1, 3);
        BlockChain bare = BlockChain.ofKeys(SPACE, List.of(chain.key(0), chain.key(1), chain.key(2)));
        assertThat(bare.key(2)).isEqualTo(chain.key(2)).isEqualTo(key(1, 2).toBlockKey(SPACE));
        assertThat(bare.engineHash64(2)).isZero();
        assertThat(chain.engineHash64(2)).isEqualTo(key(1, 2).low64());
    }
}
