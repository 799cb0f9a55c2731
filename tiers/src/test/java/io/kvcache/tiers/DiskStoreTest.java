package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.directory.DiskDirectoryException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A store with a disk in a directory, as an embedder uses it.
@Tag("slow")
final class DiskStoreTest {

    /// 16 tokens of 64 KiB: blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final int BLOCK = 1 << 20;
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);
    private static final long MIB = 1L << 20;

    @TempDir
    private Path folder;

    private TieredKvCacheBuilder builder(long hostMib, AdmissionKind admission) {
        return TieredKvCache.builder()
                .hostBytes(hostMib * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .clock(new SlowClock())
                .admission(admission)
                .disk(folder.resolve("disk"), 600 * MIB);
    }

    private TieredKvCache open(long hostMib, AdmissionKind admission) {
        TieredKvCache cache = builder(hostMib, admission).build();
        cache.register(SPACE);
        cache.register(THINGS);
        return cache;
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * 16).map(i -> i + seed * 1_000_000).toArray());
    }

    private static byte[] content(BlockChain chain, int index) {
        byte[] bytes = new byte[BLOCK];
        Arrays.fill(bytes, (byte) chain.keyLo(index));
        MemorySegment.ofArray(bytes).set(ValueLayout.JAVA_LONG_UNALIGNED, BLOCK - 8, chain.keyHi(index));
        return bytes;
    }

    private static void put(KvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(PATIENCE))) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    writer.copyFrom(MemorySegment.ofArray(content(chain, index)));
                    assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
                } else {
                    assertThat(writer.outcome()).isEqualTo(PutOutcome.PRESENT);
                }
            }
        }
    }

    /// Acquires all that is here and on disk, checks every byte, and answers how many blocks that are.
    private static int verified(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(PATIENCE))) {
            int ready = table.await(chain.length(), Duration.ofNanos(PATIENCE));
            for (int index = 0; index < ready; index++) {
                assertThat(table.segment(index).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content(chain, index));
            }
            assertThat(table.endBlock()).isEqualTo(ready);
            return ready;
        }
    }

    @Test
    void givenMoreThanHostMemoryHolds_whenAcquired_thenTheRestComesFromDisk() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            BlockChain first = chain(1, 40);
            put(cache, first);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            put(cache, chain(2, 60));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            Match match = cache.match(first);
            assertThat(match.blocks()).isEqualTo(40);
            assertThat(match.diskBlocks()).isPositive();
            assertThat(verified(cache, first)).isEqualTo(40);
            assertThat(verified(cache, chain(2, 60))).isEqualTo(60);
            assertThat(cache.diskStats().getFirst().loaded()).isPositive();
            assertThat(cache.stats().namespaces().getFirst().blocksLoaded()).isPositive();
            cache.validate();
        }
    }

    @Test
    void givenAFlush_whenReopened_thenEverythingIsThere() {
        try (TieredKvCache cache = open(192, AdmissionKind.SECOND_HIT)) {
            put(cache, chain(1, 20));
            put(cache, chain(2, 20));
            object(cache, new byte[] {1, 2}, 300_000);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
        try (TieredKvCache cache = open(192, AdmissionKind.SECOND_HIT)) {
            recovered(cache);
            assertThat(cache.match(chain(1, 20))).isEqualTo(new Match(0, 0, 20));
            assertThat(verified(cache, chain(1, 20))).isEqualTo(20);
            assertThat(verified(cache, chain(2, 20))).isEqualTo(20);
            assertThat(cache.getObject(THINGS, new byte[] {1, 2})).isNull();
            assertThat(cache.containsObject(THINGS, new byte[] {1, 2})).isTrue();
            try (ObjectView view = cache.fetchObject(
                            THINGS, new byte[] {1, 2}, Duration.ofNanos(PATIENCE), Runnable::run)
                    .toCompletableFuture()
                    .join()) {
                assertThat(view).isNotNull();
            }
            assertThat(cache.fetchObject(THINGS, new byte[] {9}, Duration.ofNanos(PATIENCE), Runnable::run)
                            .toCompletableFuture()
                            .join())
                    .isNull();
            checkObject(cache, new byte[] {1, 2}, 300_000);
            cache.validate();
        }
    }

    @Test
    void givenAnObjectThatWasReplacedAndOneDropped_whenReopened_thenTheNewestCounts() {
        try (TieredKvCache cache = open(192, AdmissionKind.ALWAYS)) {
            object(cache, new byte[] {1}, 10_000);
            object(cache, new byte[] {2}, 10_000);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            object(cache, new byte[] {1}, 20_000);
            assertThat(cache.dropObject(THINGS, new byte[] {2})).isTrue();
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
        try (TieredKvCache cache = open(192, AdmissionKind.ALWAYS)) {
            recovered(cache);
            checkObject(cache, new byte[] {1}, 20_000);
            assertThat(cache.containsObject(THINGS, new byte[] {2})).isFalse();
        }
    }

    @Test
    void givenADroppedChain_whenItsHeadIsPutAgainAndReopened_thenTheRestStaysDropped() {
        BlockChain chain = chain(1, 10);
        try (TieredKvCache cache = open(192, AdmissionKind.ALWAYS)) {
            put(cache, chain);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            assertThat(cache.drop(chain, 4)).isEqualTo(6);
            put(cache, chain.prefix(6));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
        try (TieredKvCache cache = open(192, AdmissionKind.ALWAYS)) {
            recovered(cache);
            assertThat(verified(cache, chain)).isEqualTo(6);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenWhatWasEvictedFromDisk_whenDroppedAndReopened_thenItsBytesDoNotComeBack(boolean namespace) {
        BlockChain evicted = chain(1, 20);
        DiskOptions few = DiskOptions.of(folder.resolve("disk"), 600 * MIB).withMaxLiveBytes(30 * MIB);
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .admission(AdmissionKind.ALWAYS)
                .disk(few)
                .build()) {
            cache.register(SPACE);
            cache.register(THINGS);
            put(cache, evicted);
            object(cache, new byte[] {1}, 10_000);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            for (int other = 2; other < 8; other++) {
                put(cache, chain(other, 15));
            }
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            assertThat(cache.match(evicted).blocks()).isZero();
            cache.dropObject(THINGS, new byte[] {1});
            if (namespace) {
                cache.drop(SPACE);
            } else {
                assertThat(cache.drop(evicted, 0)).isZero();
            }
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            recovered(cache);
            assertThat(cache.match(evicted).blocks()).isZero();
            assertThat(cache.containsObject(THINGS, new byte[] {1})).isFalse();
            assertThat(cache.match(chain(7, 15)).blocks() > 0).isNotEqualTo(namespace);
        }
    }

    @Test
    void givenABlockOnDiskAlone_whenPutAgain_thenItIsResidentAndNothingIsWritten() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            BlockChain first = chain(1, 30);
            put(cache, first);
            put(cache, chain(2, 50));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            long written = cache.offloadStats().written();
            assertThat(cache.match(first).hostBlocks()).isLessThan(30);
            put(cache, first);
            assertThat(cache.match(first).hostBlocks()).isEqualTo(30);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            assertThat(cache.offloadStats().written()).isEqualTo(written);
            assertThat(verified(cache, first)).isEqualTo(30);
        }
    }

    @Test
    void givenParentsOnDisk_whenABlockIsPutBelowThem_thenTheyComeAndItIsFound() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            BlockChain chain = chain(1, 12);
            put(cache, chain.prefix(10));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            put(cache, chain(2, 64));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 0, 10));
            for (int index = 10; index < 12; index++) {
                try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(PATIENCE))) {
                    writer.copyFrom(MemorySegment.ofArray(content(chain, index)));
                    assertThat(writer.seal()).isNotEqualTo(SealOutcome.DROPPED);
                }
            }
            assertThat(verified(cache, chain)).isGreaterThanOrEqualTo(10);
            cache.validate(); // what came with the last parent is found when the store's lock is free
            assertThat(verified(cache, chain)).isEqualTo(12);
        }
    }

    @Test
    void givenAHint_whenAChainIsExpected_thenItIsBroughtIn() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            BlockChain chain = chain(1, 10);
            put(cache, chain);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            put(cache, chain(2, 64));
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            assertThat(cache.match(chain).hostBlocks()).isZero();
            assertThat(cache.hint(new Hint.Expect(chain, Duration.ZERO))).isTrue();
            long start = System.nanoTime();
            while (cache.match(chain).hostBlocks() < 10 && System.nanoTime() - start < PATIENCE) {
                Pause.briefly();
            }
            try (BlockTable resident = cache.acquire(chain)) {
                assertThat(resident.readyBlocks()).isEqualTo(10);
            }
        }
    }

    /// Mooncake refuses 1,515 of these puts with everything evictable.
    @Test
    @Tag("slow")
    void givenAFullStoreWhoseVictimsAreBeingWritten_whenMoreIsPut_thenAllIsAccepted() {
        int blocks = Repetitions.usualOrFull(800, 2000);
        try (TieredKvCache cache = open(blocks / 8, AdmissionKind.ALWAYS)) {
            for (int i = 0; i < blocks; i++) {
                put(cache, chain(i, 1));
            }
            int found = 0;
            for (int i = 0; i < blocks; i++) {
                found += verified(cache, chain(i, 1));
            }
            assertThat(found).isBetween(300, blocks);
            cache.validate();
        }
    }

    @Test
    void givenAFullStoreWhoseVictimsAreBeingWritten_whenObjectsArePut_thenNothingIsEvictedUnwritten() {
        try (TieredKvCache cache = open(96, AdmissionKind.ALWAYS)) {
            for (int i = 0; i < 200; i++) {
                object(cache, new byte[] {(byte) i}, 1_500_000);
            }
            assertThat(cache.offloadStats().sacrificed()).isZero();
            assertThat(cache.flush(Duration.ofNanos(PATIENCE)))
                    .as("so that writes do not pin all there is")
                    .isTrue();
            for (int i = 0; i < 200; i++) {
                checkObject(cache, new byte[] {(byte) i}, 1_500_000);
            }
        }
    }

    /// Regions of a disk this small have 3 MiB.
    @Test
    void givenAnObjectThatNoRegionHolds_whenFlushed_thenTheAnswerIsNo() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            object(cache, new byte[] {1}, 1 << 20);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
            object(cache, new byte[] {2}, 4 << 20);
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isFalse();
            assertThat(cache.dropObject(THINGS, new byte[] {2})).isTrue();
            assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        }
    }

    @Test
    void givenADirectoryThatIsOpen_whenOpenedAgain_thenTheErrorNamesIt() {
        try (TieredKvCache cache = open(64, AdmissionKind.ALWAYS)) {
            assertThat(cache.diskStats()).hasSize(1);
            assertThatExceptionOfType(DiskDirectoryException.class)
                    .isThrownBy(() -> builder(64, AdmissionKind.ALWAYS).build())
                    .withMessageContaining(folder.resolve("disk").toString());
        }
    }

    private static void recovered(TieredKvCache cache) {
        long start = System.nanoTime();
        while (cache.isRecovering() && System.nanoTime() - start < PATIENCE) {
            Pause.briefly();
        }
    }

    private static byte[] objectBytes(byte[] key, int length) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) (key[0] * 7 + length / 1000));
        return bytes;
    }

    private static void object(KvCache cache, byte[] key, int length) {
        try (ObjectWriter writer = cache.putObject(THINGS, key, length, Duration.ofNanos(PATIENCE))) {
            writer.copyFrom(MemorySegment.ofArray(objectBytes(key, length)));
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
    }

    private static void checkObject(KvCache cache, byte[] key, int length) {
        try (ObjectView view = cache.getObject(THINGS, key, Duration.ofNanos(PATIENCE))) {
            assertThat(view).isNotNull();
            byte[] read = new byte[length];
            assertThat(view.bytes()).isEqualTo(length);
            view.copyTo(0, length, MemorySegment.ofArray(read));
            assertThat(read).isEqualTo(objectBytes(key, length));
        }
    }
}
