package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A store that was opened a moment ago, whose disk tells one block a tick of what it holds.
final class RecoveryWaitTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 4, 32, 16, Dtype.BF16)); // 8 KiB
    private static final int BLOCKS = 6;
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, BLOCKS * 16).toArray());
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);

    private final TickDrivenStore disk = new TickDrivenStore();

    @BeforeEach
    void restart() {
        TieredKvCache before = disk.openAndRecover().cache();
        before.register(SPACE);
        List<MemorySegment> blocks = new ArrayList<>();
        for (int i = 0; i < BLOCKS; i++) {
            blocks.add(MemorySegment.ofArray(content(i)));
        }
        assertThat(before.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(BLOCKS);
        assertThat(disk.flush()).isTrue();
        disk.close();
    }

    private TieredKvCache open() {
        TieredKvCache cache = disk.open().cache();
        cache.register(SPACE);
        assertThat(cache.isRecovering()).isTrue();
        assertThat(cache.match(CHAIN).blocks()).isZero();
        return cache;
    }

    @AfterEach
    void close() {
        disk.close();
    }

    private static byte[] content(int index) {
        byte[] bytes = new byte[8 << 10];
        Arrays.fill(bytes, (byte) (index + 1));
        return bytes;
    }

    @Test
    void givenARestart_whenAcquiredWithATimeout_thenItWaitsForItsBlocks() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(PATIENCE))) {
            assertThat(table.readyBlocks()).isZero();
            assertThat(table.endBlock()).isEqualTo(BLOCKS);

            disk.tickUntil(() -> table.await(BLOCKS, KvCache.NO_WAIT) == BLOCKS);

            for (int i = 0; i < BLOCKS; i++) {
                assertThat(table.segment(i).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content(i));
            }
        }
        assertThat(cache.stats().openTables()).isZero();
        assertThat(cache.stats().namespaces().getLast().blocksRequested()).isEqualTo(BLOCKS);
        assertThat(cache.stats().namespaces().getLast().blocksFound()).isEqualTo(BLOCKS);
    }

    @Test
    void givenARestart_whenSomebodyWaitsByAStage_thenItCompletesOnceTheDiskHasTold() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 2, Duration.ofNanos(PATIENCE))) {
            CompletableFuture<Integer> all =
                    table.onReady(BLOCKS, Runnable::run).toCompletableFuture();
            disk.tickUntil(all::isDone);

            assertThat(all.join()).isEqualTo(BLOCKS);
            assertThat(table.segment(3).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content(3));
        }
        assertThat(cache.stats().openTables()).isZero();
    }

    @Test
    void givenARestart_whenAChainIsAskedForThatNobodyPut_thenTheWaitEndsWithTheRecovery() {
        TieredKvCache cache = open();
        BlockChain other = BlockChain.of(SPACE, IntStream.range(7, 7 + 64).toArray());
        try (BlockTable table = cache.acquire(other, 0, Duration.ofNanos(PATIENCE))) {
            assertThat(table.await(1, Duration.ofNanos(PATIENCE))).isZero();
            assertThat(cache.isRecovering()).isFalse();
            assertThat(table.endBlock()).isZero();
        }
    }

    @Test
    void givenARestart_whenTheTimeoutPassesFirst_thenTheTableEndsWithNothing() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(1))) {
            disk.tick();
            assertThat(table.await(1, Duration.ofNanos(PATIENCE))).isZero();
            assertThat(table.endBlock()).isZero();
            assertThat(cache.isRecovering()).isTrue();
        }
    }

    /// A caller that only asks how far the table goes hears the same as one that waits.
    @Test
    void givenARestart_whenTheTimeoutPassesAndTheTableIsAsked_thenItHasEnded() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(1))) {
            disk.tick();
            assertThat(table.endBlock()).isZero();
            assertThat(cache.isRecovering()).isTrue();
        }
    }

    /// The second look takes time too, and adds none to the time-out.
    @Test
    void givenASecondLookThatTakesTime_whenTheTimeoutPasses_thenTheTableHasEnded() {
        TieredKvCache cache = open();
        long end = disk.nanos() + PATIENCE;
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(PATIENCE))) {
            disk.setReadNanos(TimeUnit.MICROSECONDS.toNanos(1));
            disk.tickUntil(() -> !cache.isRecovering());
            disk.device().hangAll();
            disk.setReadNanos(0);
            assertThat(table.readyBlocks()).isZero();

            disk.advanceTo(end - 1);
            assertThat(table.endBlock()).isEqualTo(BLOCKS);
            disk.advanceTo(end);
            assertThat(table.endBlock()).isZero();
        }
        disk.device().resume();
    }

    @Test
    void givenARestart_whenTheBlocksAreToldAndTheTableIsAsked_thenTheyBecomeReady() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(PATIENCE))) {
            disk.tickUntil(() -> table.readyBlocks() == BLOCKS);
            assertThat(table.endBlock()).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenARestart_whenTheTableIsClosedFirst_thenWhoWaitsIsToldAndNothingIsHeld() {
        TieredKvCache cache = open();
        BlockTable table = cache.acquire(CHAIN, 0, Duration.ofNanos(PATIENCE));
        CompletableFuture<Integer> all = table.onReady(BLOCKS, Runnable::run).toCompletableFuture();
        table.close();

        assertThat(all.join()).isZero();
        assertThat(cache.stats().openTables()).isZero();
        disk.tickUntil(() -> !cache.isRecovering());
        assertThat(cache.stats().openTables()).isZero();
    }

    @Test
    void givenARestart_whenNothingIsWaitedFor_thenItMissesAtOnce() {
        TieredKvCache cache = open();
        try (BlockTable table = cache.acquire(CHAIN, 0, KvCache.NO_WAIT)) {
            assertThat(table.endBlock()).isZero();
        }
        assertThat(cache.isRecovering()).isTrue();
    }

    @Test
    void givenARestart_whenTheRecoveryIsAwaited_thenAllIsFoundAfterIt() {
        TieredKvCache cache = open();
        assertThat(cache.awaitRecovered(Duration.ZERO)).isFalse();

        assertThat(cache.awaitRecovered(Duration.ofSeconds(60))).isTrue();

        assertThat(cache.isRecovering()).isFalse();
        assertThat(cache.match(CHAIN).diskBlocks()).isEqualTo(BLOCKS);
    }

    @Test
    void givenManyThatWait_whenTheRecoveryEnds_thenTheyAreToldInTheOrderTheyCame() {
        TickDrivenCache opened = disk.open();
        List<Integer> told = new ArrayList<>();
        List<Integer> asked = IntStream.range(0, 50).boxed().toList();
        asked.forEach(i -> opened.tierScheduler().addRecoveryListener(() -> told.add(i)));

        disk.tickUntil(() -> !opened.cache().isRecovering());

        assertThat(told).isEqualTo(asked);
    }

    @Test
    void givenSomebodyWhoWaitedForHours_whenTheTableIsClosed_thenNothingHoldsOnToIt() throws InterruptedException {
        TieredKvCache cache = open();
        WeakReference<BlockTable> recovering = waitedFor(cache);
        assertThat(cache.awaitRecovered(Duration.ofSeconds(60))).isTrue();
        WeakReference<BlockTable> loading = waitedFor(cache);

        assertGone(recovering);
        assertGone(loading);
    }

    /// A table with a stage that waited for it, closed before its blocks came.
    private static WeakReference<BlockTable> waitedFor(TieredKvCache cache) {
        try (BlockTable table = cache.acquire(CHAIN, 0, Duration.ofHours(5))) {
            var _ = table.onReady(BLOCKS, Runnable::run);
            assertThat(table.readyBlocks()).isZero();
            return new WeakReference<>(table);
        }
    }

    private static void assertGone(WeakReference<BlockTable> table) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE;
        while (table.get() != null && System.nanoTime() < end) {
            System.gc();
            Thread.sleep(5); // a collector's time is not the test's to advance
        }
        assertThat(table.get()).as("a closed table").isNull();
    }
}
