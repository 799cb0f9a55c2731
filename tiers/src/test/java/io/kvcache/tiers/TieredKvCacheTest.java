package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.memory.MemoryReservationException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

final class TieredKvCacheTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(4, 8, 128, 16, Dtype.BF16));
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, 64).toArray());

    private static TieredKvCacheBuilder small() {
        return TieredKvCache.builder().hostBytes(64 << 20).closeWait(Duration.ZERO);
    }

    private static void put(TieredKvCache cache, int index, byte value) {
        try (BlockWriter writer = cache.put(CHAIN, index, 0, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            writer.segment().fill(value);
            writer.seal();
        }
    }

    @Test
    void givenBlocksPut_whenAcquired_thenTheirBytesComeBackInPlace() {
        try (TieredKvCache cache = small().build()) {
            cache.register(SPACE);
            put(cache, 0, (byte) 7);
            put(cache, 1, (byte) 8);
            try (BlockTable table = cache.acquire(CHAIN)) {
                assertThat(table.readyBlocks()).isEqualTo(2);
                assertThat(table.segment(0).get(ValueLayout.JAVA_BYTE, 100)).isEqualTo((byte) 7);
                assertThat(table.segment(1).byteSize()).isEqualTo(SPACE.blockBytes());
                assertThat(table.segment(1).isReadOnly()).isTrue();
            }
            cache.validate();
        }
    }

    @Test
    void givenADiskThatIsTooSmall_whenAdded_thenItIsNamed() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> small().disk(Path.of("/mnt/kv"), 0))
                .withMessage("a disk at /mnt/kv of 0 bytes; it takes 6291456 and up");
    }

    @Test
    @SuppressWarnings("NullAway") // of a caller whose compiler does not look
    void givenNull_whenSet_thenItIsRefusedAtOnce() {
        assertThatNullPointerException().isThrownBy(() -> small().policy(null)).withMessage("policy");
        assertThatNullPointerException()
                .isThrownBy(() -> small().disk(null, 1L << 30))
                .withMessage("a disk takes a directory");
    }

    @Test
    void givenMoreMemoryThanThereIs_whenBuilt_thenTheRefusalIsKnownByItsType() {
        assertThatThrownBy(() -> small().hostBytes(1L << 50).build())
                .isInstanceOf(MemoryReservationException.class)
                .hasMessageStartingWith("Cannot reserve 1.0 PiB (1125899906842624 bytes) of host memory for 'slots': ");
    }

    @Test
    void givenCheckedStore_whenSegmentIsUsedAfterClose_thenItThrows() {
        try (TieredKvCache cache = small().checkSegments(true).build()) {
            cache.register(SPACE);
            put(cache, 0, (byte) 7);
            BlockTable table = cache.acquire(CHAIN);
            MemorySegment segment = table.segment(0);
            table.close();
            assertThatIllegalStateException().isThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0));
            assertThatIllegalStateException().isThrownBy(() -> table.segment(0)).withMessageContaining("closed");
            table.close();
        }
    }

    @Test
    void givenOpenTable_whenStoreCloses_thenMemoryStaysMapped() {
        TieredKvCache cache = small().checkSegments(false).build();
        cache.register(SPACE);
        put(cache, 0, (byte) 7);
        BlockTable table = cache.acquire(CHAIN);
        MemorySegment segment = table.segment(0);
        cache.close();
        assertThat(segment.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
        table.close();
        cache.close();
        assertThatIllegalStateException().isThrownBy(() -> cache.acquire(CHAIN)).withMessageContaining("closed");
    }

    @Test
    void givenStrictStoreThatTracks_whenClosedWithATable_thenTheReportShowsWhoTookIt() {
        TieredKvCache cache = small().failOnLeak(true).trackOpenHandles(true).build();
        cache.register(SPACE);
        put(cache, 0, (byte) 7);
        BlockTable table = cache.acquire(CHAIN);
        assertThatThrownBy(cache::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("1 tables, views or writers are open")
                .hasStackTraceContaining("givenStrictStoreThatTracks_whenClosedWithATable");
        table.close();
    }

    @Test
    void givenObject_whenReplaced_thenAnOpenViewKeepsTheOldBytes() {
        Namespace space = Namespace.objects("objects", "t");
        byte[] key = {1, 2, 3};
        try (TieredKvCache cache = small().build()) {
            cache.register(space);
            putObject(cache, key, 70_000, 1);
            try (ObjectView old = cache.getObject(space, key)) {
                assertThat(old).isNotNull();
                putObject(cache, key, 5_000, 2);

                assertThat(old.bytes()).isEqualTo(70_000);
                assertThat(old.segments().getFirst().get(ValueLayout.JAVA_BYTE, 0))
                        .isEqualTo((byte) 1);
            }
            try (ObjectView fresh = cache.getObject(space, key)) {
                assertThat(fresh).isNotNull();
                assertThat(fresh.bytes()).isEqualTo(5_000);
                byte[] copy = new byte[10];
                fresh.copyTo(4_990, 10, MemorySegment.ofArray(copy));
                assertThat(copy).containsOnly(2);
            }
            assertThat(cache.stats().removals().replaced()).isEqualTo(1);
            cache.validate();
        }
    }

    private static void putObject(TieredKvCache cache, byte[] key, int bytes, int value) {
        try (var writer = cache.putObject(Namespace.objects("objects", "t"), key, bytes, KvCache.NO_WAIT)) {
            byte[] content = new byte[bytes];
            java.util.Arrays.fill(content, (byte) value);
            writer.copyFrom(MemorySegment.ofArray(content));
            writer.seal();
        }
    }

    @Test
    void givenTooLittleMemory_whenBuilt_thenTheErrorNamesValueAndRange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TieredKvCache.builder().hostBytes(1 << 20))
                .withMessageContaining("1048576")
                .withMessageContaining("33554432");
    }

    @Test
    void givenRunOfBlocks_whenPutAll_thenAllAreThere() {
        try (TieredKvCache cache = small().build()) {
            cache.register(SPACE);
            byte[] block = new byte[(int) SPACE.blockBytes()];
            List<MemorySegment> blocks = List.of(MemorySegment.ofArray(block), MemorySegment.ofArray(block));
            assertThat(cache.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(2);
            assertThat(cache.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).present())
                    .isEqualTo(2);
            assertThat(cache.match(CHAIN).blocks()).isEqualTo(2);
        }
    }

    @Test
    void givenAFullStore_whenAPutThatWaitsIsInterrupted_thenItEndsWithoutRoom() throws InterruptedException {
        byte[] key = {1};
        List<ObjectWriter> writers = new ArrayList<>();
        try (TieredKvCache cache = small().build()) {
            cache.register(SPACE);
            boolean room = true;
            while (room) {
                ObjectWriter writer =
                        cache.putObject(SPACE, new byte[] {2, (byte) writers.size()}, 16 << 20, KvCache.NO_WAIT);
                room = writer.outcome() == PutOutcome.RESERVED;
                writers.add(writer);
            }
            AtomicReference<PutOutcome> outcome = new AtomicReference<>();
            Thread waiting = Thread.ofPlatform().daemon().start(() -> {
                try (ObjectWriter writer = cache.putObject(SPACE, key, 16 << 20, Duration.ofNanos(Long.MAX_VALUE))) {
                    outcome.set(writer.outcome());
                }
            });
            waiting.interrupt();
            assertThat(waiting.join(Duration.ofSeconds(60))).isTrue();
            assertThat(outcome).hasValue(PutOutcome.NO_ROOM);
            writers.forEach(ObjectWriter::close);
        }
    }

    @Test
    void givenAnExecutorThatIsClosed_whenAnObjectIsFetched_thenNothingIsHeldForIt() {
        byte[] key = {1};
        try (TieredKvCache cache = small().failOnLeak(true).build()) {
            cache.register(SPACE);
            try (ObjectWriter writer = cache.putObject(SPACE, key, 100, KvCache.NO_WAIT)) {
                writer.seal();
            }
            for (byte[] wanted : List.of(key, new byte[] {2})) {
                CompletionStage<@Nullable ObjectView> fetched =
                        cache.fetchObject(SPACE, wanted, Duration.ofNanos(1), work -> {
                            throw new RejectedExecutionException("closed");
                        });
                assertThat(fetched.toCompletableFuture())
                        .failsWithin(Duration.ofSeconds(20))
                        .withThrowableThat()
                        .havingRootCause()
                        .isInstanceOf(RejectedExecutionException.class);
            }
            assertThat(cache.stats().openTables()).isZero();
            assertThat(cache.dropObject(SPACE, key)).isTrue();
            cache.validate();
        }
    }

    @Test
    void givenBlocksLargerThanTheStore_whenRegistered_thenTheErrorNamesThemAndWhatThereIs() {
        Namespace large = Namespace.of("large", BlockShape.kv(128, 8, 128, 512, Dtype.BF16));
        try (TieredKvCache cache = small().build()) {
            assertThatThrownBy(() -> cache.register(large))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("large")
                    .hasMessageContaining(" has blocks of 268435456 bytes; this store takes blocks of up to 67108864"
                            + " bytes, all of its host memory: give it more hostBytes");
        }
    }
}
