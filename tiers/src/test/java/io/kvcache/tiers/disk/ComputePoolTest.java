package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.disk.ComputePool.Computation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Checksums beside the log's thread, with an executor that the test drives.
final class ComputePoolTest {

    private static final int LARGE = 512 << 10;

    private final Arena arena = Arena.ofShared();
    private final Queue<Runnable> beside = new ArrayDeque<>();
    private final List<Boolean> ended = new ArrayList<>();
    private int wakes;
    private final ComputePool computePool = new ComputePool(beside::add, () -> wakes++);

    @AfterEach
    void close() {
        arena.close();
    }

    /// Compares a checksum, and tells a list.
    private static final class Check implements Computation {
        private final BufferList bufferList;
        private final int checksum;
        private final List<Boolean> told;
        private boolean matches;

        Check(BufferList bufferList, int checksum, List<Boolean> told) {
            this.bufferList = bufferList;
            this.checksum = checksum;
            this.told = told;
        }

        @Override
        public void compute() {
            matches = bufferList.checksum() == checksum;
        }

        @Override
        public void finish() {
            told.add(matches);
        }
    }

    private BufferList pieces(int bytes) {
        MemorySegment memory = arena.allocate(bytes, DiskGeometry.PAGE_BYTES);
        memory.fill((byte) bytes);
        return new BufferList(List.of(memory), bytes);
    }

    private void begin(int bytes, int off) {
        BufferList bufferList = pieces(bytes);
        computePool.submit(bytes, new Check(bufferList, bufferList.checksum() + off, ended));
    }

    @Test
    void givenASmallBlock_whenChecked_thenItIsDoneAtOnce() {
        begin(4096, 0);
        begin(8192, 1);
        assertThat(ended).containsExactly(true, false);
        assertThat(computePool.isIdle()).isTrue();
    }

    @Test
    void givenALargeBlock_whenItWasCheckedBeside_thenTheOwnerIsWokenAndToldWhenItAsks() {
        begin(LARGE, 0);
        begin(LARGE, 1);
        assertThat(computePool.pump(false)).isZero();
        Objects.requireNonNull(beside.poll()).run();
        Objects.requireNonNull(beside.poll()).run();
        assertThat(wakes).isEqualTo(2);
        assertThat(ended).isEmpty();
        assertThat(computePool.pump(false)).isEqualTo(2);
        assertThat(ended).containsExactly(true, false);
        assertThat(computePool.isIdle()).isTrue();
    }

    @Test
    void givenNobodyBeside_whenTheOwnerHelps_thenItChecksOneATimeAndTheOtherDoesNotCheckItAgain() {
        begin(LARGE, 0);
        begin(LARGE, 1);
        assertThat(computePool.pump(true)).isOne();
        assertThat(computePool.pump(true)).isOne();
        assertThat(ended).containsExactly(true, false);
        beside.forEach(Runnable::run);
        assertThat(computePool.pump(true)).isZero();
        assertThat(wakes).isZero();
    }

    @Test
    void givenTwoThreads_whenTheyRaceForManyBlocks_thenEachIsToldOnce() {
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            List<Boolean> told = new ArrayList<>();
            ComputePool shared = new ComputePool(threads, () -> {});
            BufferList bufferList = pieces(LARGE);
            int right = bufferList.checksum();
            for (int i = 0; i < 500; i++) {
                shared.submit(LARGE, new Check(bufferList, right + i % 2, told));
                shared.pump(i % 3 == 0);
            }
            while (!shared.isIdle()) {
                shared.pump(true);
            }
            assertThat(told).hasSize(500);
            assertThat(told.stream().filter(good -> good)).hasSize(250);
        }
    }
}
