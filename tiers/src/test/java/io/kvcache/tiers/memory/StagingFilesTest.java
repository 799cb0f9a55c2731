package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.tiers.options.StagingLimits;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class StagingFilesTest {

    private static final int PAGE = 4096;

    @TempDir
    private Path parent = Path.of("");

    private SharedMemorySource source(StagingLimits limits) {
        return new SharedMemorySource(parent.resolve("store"), 7, limits);
    }

    private List<String> staged() throws IOException {
        try (Stream<Path> all = Files.list(parent.resolve("store"))) {
            return all.map(each -> each.getFileName().toString())
                    .filter(name -> name.startsWith("stage-"))
                    .toList();
        }
    }

    @Test
    void givenBytesBehindTheHead_whenRead_thenThoseAndOnlyWhileTheyAreThere() throws IOException {
        SharedMemorySource source = source(StagingLimits.DEFAULTS);
        try (Arena arena = Arena.ofConfined();
                HostMemory slots = source.reserve("slots", PAGE)) {
            StagingArea area = source.createStagingArea(10 * PAGE);
            assertThat(slots.segment().byteSize()).isEqualTo(PAGE);
            Path file = parent.resolve("store").resolve(area.file());
            MemorySegment into = arena.allocate(5);
            try (FileChannel client = FileChannel.open(file, StandardOpenOption.WRITE)) {
                client.write(ByteBuffer.wrap(new byte[] {1, 2, 3, 4, 5}), PAGE + 9 * PAGE);
                assertThat(area.read(9 * PAGE, into)).isTrue();
                assertThat(into.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 3, 4, 5);
                assertThatThrownBy(() -> area.read(10 * PAGE - 4, into)).isInstanceOf(IndexOutOfBoundsException.class);
                assertThatThrownBy(() -> area.read(-1, into)).isInstanceOf(IndexOutOfBoundsException.class);
                client.truncate(PAGE + 9 * PAGE + 4);
                assertThat(area.read(9 * PAGE, into)).as("cut short").isFalse();
            }
            area.close();
            assertThat(area.read(0, into)).as("closed").isFalse();
            assertThat(staged()).isEmpty();
        }
    }

    @Test
    void givenStagingMemoryThatNobodyGaveBack_whenTheStoreCloses_thenItIsGone() {
        SharedMemorySource source = source(StagingLimits.DEFAULTS);
        HostMemory slots = source.reserve("slots", PAGE);
        StagingArea area = source.createStagingArea(PAGE);
        slots.close();
        assertThat(parent).as("it was made, and is gone").isEmptyDirectory();
        area.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> source.createStagingArea(PAGE))
                .withMessageContaining("the store is closed");
    }

    @Test
    void givenClientsThatHaveAllThereIs_whenStaged_thenRefusedUntilOneGivesBack() {
        SharedMemorySource source = source(new StagingLimits(2 * PAGE, 3 * PAGE));
        try (HostMemory slots = source.reserve("slots", PAGE)) {
            assertThat(slots.segment().byteSize()).isEqualTo(PAGE);
            assertThat(source.maxStagingBytes()).isEqualTo(2 * PAGE);
            StagingArea first = source.createStagingArea(1L << 60);
            assertThat(first.bytes()).isEqualTo(2 * PAGE);
            assertThatIllegalStateException()
                    .isThrownBy(() -> source.createStagingArea(PAGE + 1))
                    .withMessageContaining("8.0 KiB (8192 bytes) of 12.0 KiB (12288 bytes)");
            try (StagingArea second = source.createStagingArea(1)) {
                assertThat(second.bytes()).isEqualTo(PAGE);
            }
            first.close();
            first.close();
            source.createStagingArea(2 * PAGE);
            source.createStagingArea(PAGE);
        }
    }

    @Test
    void givenLimitsThatDoNotGoTogether_whenMade_thenTheyAreNamed() {
        long[][] all = {{1, 2}, {PAGE, PAGE - 1}, {0, PAGE}, {PAGE, 0}, {-1, -1}, {(16L << 30) + 1, 1L << 60}};
        for (long[] wrong : all) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new StagingLimits(wrong[0], wrong[1]))
                    .withMessageContaining(wrong[0] + " bytes a client and " + wrong[1] + " in all; allowed: 4096 to");
        }
    }
}
