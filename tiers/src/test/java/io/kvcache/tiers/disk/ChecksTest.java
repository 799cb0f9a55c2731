package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

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
final class ChecksTest {

    private static final int LARGE = 512 << 10;

    private final Arena arena = Arena.ofShared();
    private final Queue<Runnable> beside = new ArrayDeque<>();
    private final List<Boolean> ended = new ArrayList<>();
    private int wakes;
    private final Checks checks = new Checks(beside::add, () -> wakes++);

    @AfterEach
    void close() {
        arena.close();
    }

    private Pieces pieces(int bytes) {
        MemorySegment memory = arena.allocate(bytes, Geometry.PAGE_BYTES);
        memory.fill((byte) bytes);
        return new Pieces(List.of(memory), bytes);
    }

    private void begin(int bytes, int off) {
        Pieces pieces = pieces(bytes);
        checks.check(pieces, pieces.checksum() + off, ended::add);
    }

    @Test
    void givenASmallBlock_whenChecked_thenItIsDoneAtOnce() {
        begin(4096, 0);
        begin(8192, 1);
        assertThat(ended).containsExactly(true, false);
        assertThat(checks.idle()).isTrue();
    }

    @Test
    void givenALargeBlock_whenItWasCheckedBeside_thenTheOwnerIsWokenAndToldWhenItAsks() {
        begin(LARGE, 0);
        begin(LARGE, 1);
        assertThat(checks.pump(false)).isZero();
        Objects.requireNonNull(beside.poll()).run();
        Objects.requireNonNull(beside.poll()).run();
        assertThat(wakes).isEqualTo(2);
        assertThat(ended).isEmpty();
        assertThat(checks.pump(false)).isEqualTo(2);
        assertThat(ended).containsExactly(true, false);
        assertThat(checks.idle()).isTrue();
    }

    @Test
    void givenNobodyBeside_whenTheOwnerHelps_thenItChecksOneATimeAndTheOtherDoesNotCheckItAgain() {
        begin(LARGE, 0);
        begin(LARGE, 1);
        assertThat(checks.pump(true)).isOne();
        assertThat(checks.pump(true)).isOne();
        assertThat(ended).containsExactly(true, false);
        beside.forEach(Runnable::run);
        assertThat(checks.pump(true)).isZero();
        assertThat(wakes).isZero();
    }

    @Test
    void givenTwoThreads_whenTheyRaceForManyBlocks_thenEachIsToldOnce() {
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            List<Boolean> told = new ArrayList<>();
            Checks shared = new Checks(threads, () -> {});
            Pieces pieces = pieces(LARGE);
            int right = pieces.checksum();
            for (int i = 0; i < 500; i++) {
                shared.check(pieces, right + i % 2, told::add);
                shared.pump(i % 3 == 0);
            }
            while (!shared.idle()) {
                shared.pump(true);
            }
            assertThat(told).hasSize(500);
            assertThat(told.stream().filter(good -> good)).hasSize(250);
        }
    }
}
