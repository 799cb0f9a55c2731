package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Two disks in files, of which one is left out of a run.
final class DiskLeftOutTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 1, 128, 16, Dtype.BF16);
    private static final Namespace SPACE = Namespace.of("model", SHAPE);
    private static final Namespace OTHER = Namespace.of("other", SHAPE);
    private static final Namespace THINGS = Namespace.objects("things", "");
    private static final Duration A_MINUTE = Duration.ofMinutes(1);
    private static final int KEYS = 80;
    private static final int BLOCKS = 40;
    private static final int NONE = -1;

    @TempDir
    private Path folder;

    private TieredKvCache open(String... disks) {
        TieredKvCacheBuilder builder =
                TieredKvCache.builder().hostBytes(64 << 20).admission(AdmissionKind.ALWAYS);
        for (String disk : disks) {
            builder.disk(folder.resolve(disk), 16 << 20);
        }
        TieredKvCache cache = builder.build();
        cache.register(SPACE);
        cache.register(OTHER);
        cache.register(THINGS);
        assertThat(cache.awaitRecovered(A_MINUTE)).isTrue();
        return cache;
    }

    private static byte[] key(int index) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(index).array();
    }

    private static void put(TieredKvCache cache, int index, int version) {
        byte[] value = new byte[20_000];
        Arrays.fill(value, (byte) version);
        assertThat(cache.storeObject(THINGS, key(index), MemorySegment.ofArray(value), A_MINUTE))
                .isTrue();
    }

    private static int version(TieredKvCache cache, int index) {
        try (ObjectView view = cache.getObject(THINGS, key(index), A_MINUTE)) {
            byte[] first = {NONE};
            if (view != null) {
                view.copyTo(0, 1, MemorySegment.ofArray(first));
            }
            return first[0];
        }
    }

    /// Prompts of one block, so that each lies on one disk alone.
    private static List<BlockChain> prompts(Namespace space) {
        return IntStream.range(0, BLOCKS)
                .mapToObj(i -> BlockChain.of(
                        space,
                        IntStream.range(0, SHAPE.blockTokens()).map(token -> i).toArray()))
                .toList();
    }

    private static void putPrompts(TieredKvCache cache, Namespace space) {
        for (BlockChain prompt : prompts(space)) {
            try (BlockWriter writer = cache.put(prompt, 0, 0, A_MINUTE)) {
                writer.segment().fill((byte) 1);
                writer.seal();
            }
        }
    }

    private static int found(TieredKvCache cache, Namespace space) {
        return prompts(space).stream()
                .mapToInt(prompt -> cache.match(prompt).blocks())
                .sum();
    }

    /// Values 0 to [#KEYS] of version 1, and prompts of two models, on the second of two disks.
    private void fill() {
        try (TieredKvCache cache = open("b")) {
            for (int i = 0; i < KEYS; i++) {
                put(cache, i, 1);
            }
            putPrompts(cache, SPACE);
            putPrompts(cache, OTHER);
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        try (TieredKvCache cache = open("a", "b")) {
            assertThat(version(cache, 0)).as("a new disk changes nothing").isEqualTo(1);
        }
    }

    @Test
    void givenValuesReplacedAndDeletedWithoutADisk_whenItIsBack_thenNoOldOneIs() {
        fill();
        try (TieredKvCache cache = open("a")) {
            for (int i = 0; i < KEYS; i += 2) {
                put(cache, i, 2);
                cache.dropObject(THINGS, key(i + 1));
            }
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        for (int again = 0; again < 2; again++) {
            try (TieredKvCache cache = open("b", "a")) {
                for (int i = 0; i < KEYS; i += 2) {
                    assertThat(version(cache, i)).isEqualTo(2);
                    assertThat(version(cache, i + 1)).isEqualTo(NONE);
                }
                assertThat(found(cache, SPACE)).as("blocks stay").isEqualTo(BLOCKS);
            }
        }
    }

    @Test
    void givenBlocksDroppedWithoutADisk_whenItIsBack_thenTheyAreNot() {
        fill();
        try (TieredKvCache cache = open("a")) {
            cache.drop(SPACE);
            prompts(OTHER).forEach(prompt -> cache.drop(prompt, 0));
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        try (TieredKvCache cache = open("a", "b")) {
            assertThat(found(cache, SPACE) + found(cache, OTHER)).isZero();
            putPrompts(cache, SPACE);
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        try (TieredKvCache cache = open("a", "b")) {
            assertThat(found(cache, SPACE)).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenADiskOfAnotherStore_whenAdded_thenOneOfBothGivesUpItsValues() {
        try (TieredKvCache cache = open("a")) {
            put(cache, 0, 1);
        }
        try (TieredKvCache cache = open("b")) {
            put(cache, 0, 2);
            put(cache, 1, 2);
        }
        try (TieredKvCache cache = open("a", "b")) {
            assertThat(version(cache, 0)).as("the first disk's set counts").isEqualTo(1);
            assertThat(version(cache, 1)).isEqualTo(NONE);
        }
    }
}
