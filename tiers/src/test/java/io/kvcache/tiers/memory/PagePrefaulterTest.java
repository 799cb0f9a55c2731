package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.contract.Pause;
import io.kvcache.tiers.memory.PagePrefaulter.BackgroundPrefaulter;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import io.kvcache.tiers.options.MemoryOptions.HugePages;
import io.kvcache.tiers.os.Libc;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@EnabledOnOs(OS.LINUX)
class PagePrefaulterTest {

    private static final long BYTES = (16L << 20) + 4096;

    @ParameterizedTest(name = "populate by madvise: {0}")
    @ValueSource(booleans = {true, false})
    void givenUntouchedMemory_whenSteppedThrough_thenEveryPageIsBacked(boolean madvise) throws IOException {
        try (MappedMemory memory = source().reserve("slots", BYTES)) {
            assertThat(backedBytes(memory.segment())).isZero();
            PagePrefaulter toucher = toucher(memory.segment(), madvise);
            long touched = 0;
            for (long step = toucher.prefaultNext(1 << 20); step > 0; step = toucher.prefaultNext(1 << 20)) {
                touched += step;
            }
            assertThat(touched).isEqualTo(BYTES);
            assertThat(backedBytes(memory.segment())).isEqualTo(BYTES);
        }
    }

    @Test
    void givenSteps_whenAskedForProgress_thenIsThePartTouched() {
        try (Arena arena = Arena.ofConfined()) {
            PagePrefaulter toucher = toucher(arena.allocate(1 << 20, 4096), false);
            assertThat(toucher.progress()).isZero();
            assertThat(toucher.prefaultNext(256 << 10)).isEqualTo(256 << 10);
            assertThat(toucher.progress()).isEqualTo(0.25);
            assertThat(toucher.prefaultNext(Long.MAX_VALUE)).isEqualTo(768 << 10);
            assertThat(toucher.progress()).isEqualTo(1.0);
            assertThat(toucher.prefaultNext(1)).isZero();
        }
    }

    @Test
    void givenTinyStep_whenTaken_thenIsOneUnit() {
        try (Arena arena = Arena.ofConfined()) {
            PagePrefaulter toucher = toucher(arena.allocate(1 << 20, 4096), false);
            assertThat(toucher.prefaultNext(1)).isEqualTo(64 << 10);
        }
    }

    /// Two threads write to the first long of each page, which is the one that the toucher adds zero to, and read
    /// back what they wrote. A toucher that loaded and stored would put an old value back sooner or later.
    @ParameterizedTest(name = "populate by madvise: {0}")
    @ValueSource(booleans = {true, false})
    void givenConcurrentWriters_whenTouchedOverAndOver_thenNoWriteIsLost(boolean madvise) throws Exception {
        int pages = 32;
        try (MappedMemory memory = source().reserve("slots", pages * 4096L)) {
            MemorySegment segment = memory.segment();
            List<FutureTask<Integer>> writers = List.of(
                    start(() -> lostWrites(segment.asSlice(0, pages * 2048L))),
                    start(() -> lostWrites(segment.asSlice(pages * 2048L))));
            while (!writers.stream().allMatch(FutureTask::isDone)) {
                toucher(segment, madvise).prefaultNext(Long.MAX_VALUE);
            }
            assertThat(writers.get(0).get()).isZero();
            assertThat(writers.get(1).get()).isZero();
        }
    }

    @Test
    void givenThreadAroundIt_whenAwaited_thenAllIsTouched() throws Exception {
        try (MappedMemory memory = source().reserve("slots", BYTES);
                BackgroundPrefaulter background = BackgroundPrefaulter.start(new PagePrefaulter(memory), "slots")) {
            assertThat(background.await(Duration.ofSeconds(60))).isTrue();
            assertThat(background.progress()).isEqualTo(1.0);
        }
    }

    @Test
    void givenThreadAtWork_whenClosed_thenItStopsAndTheMemoryCanBeClosed() throws Exception {
        BlockingMadvise held = new BlockingMadvise();
        MappedMemory memory = source().reserve("slots", BYTES);
        PagePrefaulter toucher = new PagePrefaulter(memory.segment(), _ -> true, held.libc());
        BackgroundPrefaulter background = BackgroundPrefaulter.start(toucher, "slots");
        held.awaitCall();
        Thread closing = Thread.ofPlatform().daemon().start(background::close);
        while (closing.isAlive() && closing.getState() != Thread.State.WAITING) {
            Pause.briefly();
        }
        assertThat(closing.isAlive()).as("waits for the step that is under way").isTrue();
        held.releaseOne();
        assertThat(closing.join(Duration.ofSeconds(60))).isTrue();
        assertThat(background.progress()).isBetween(0.1, 0.15);
        memory.close();
    }

    @Test
    void givenClosedMemory_whenStepped_thenThrows() {
        MappedMemory memory = source().reserve("slots", BYTES);
        PagePrefaulter toucher = new PagePrefaulter(memory);
        memory.close();
        assertThatIllegalStateException().isThrownBy(() -> toucher.prefaultNext(1 << 20));
    }

    private static int lostWrites(MemorySegment pages) {
        int lost = 0;
        for (long value = 1; value <= 20_000; value++) {
            for (long offset = 0; offset < pages.byteSize(); offset += 4096) {
                pages.set(JAVA_LONG, offset, value);
            }
            for (long offset = 0; offset < pages.byteSize(); offset += 4096) {
                lost += pages.get(JAVA_LONG, offset) == value ? 0 : 1;
            }
        }
        return lost;
    }

    private static FutureTask<Integer> start(Callable<Integer> work) {
        FutureTask<Integer> task = new FutureTask<>(work);
        Thread.ofPlatform().daemon().start(task);
        return task;
    }

    /// Uses a memfd, because the kernel joins neighbouring anonymous mappings and counts them as one.
    private static MappedMemorySource source() {
        return new MappedMemorySource(
                MemoryOptions.defaults().withBacking(Backing.MEMFD).withHugePages(HugePages.OFF));
    }

    private static PagePrefaulter toucher(MemorySegment segment, boolean madvise) {
        return new PagePrefaulter(segment, _ -> true, madvise ? Libc.system() : Libc.unavailable());
    }

    private static long backedBytes(MemorySegment segment) throws IOException {
        List<String> lines = Files.readAllLines(Path.of("/proc/self/smaps"));
        int head = 0;
        while (!lines.get(head).startsWith(Long.toHexString(segment.address()) + "-")) {
            head++;
        }
        String resident = lines.subList(head, lines.size()).stream()
                .filter(line -> line.startsWith("Rss:"))
                .findFirst()
                .orElseThrow();
        return Long.parseLong(resident.replaceAll("[^0-9]", "")) << 10;
    }
}
