package io.kvcache.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.shm.StagingMemory.FirstFitAllocator;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// What a client maps to write into, and what it does not, whatever a server says.
@EnabledOnOs(OS.LINUX)
final class StagingMemoryTest {

    private static final int PAGE = 4096;

    private final ShmDirectory folder = ShmDirectory.make();
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .prefaultInBackground(false)
            .shareMemory(folder.path())
            .build();
    private final SharedMemory memory = Objects.requireNonNull(store.sharedMemory());

    @AfterEach
    void close() {
        store.close();
        folder.close();
    }

    private static StagingDescriptor place(StagingArea area) {
        return new StagingDescriptor(area.bytes(), area.header(), area.file());
    }

    @Test
    void givenASpan_whenWrittenTo_thenTheServerReadsIt() throws IOException {
        try (StagingArea area = memory.createStagingArea(10 * PAGE);
                Arena arena = Arena.ofConfined()) {
            StagingMemory staging = StagingMemory.open(memory.files(), place(area));
            StagingMemory.Allocation first = Objects.requireNonNull(staging.allocate(PAGE + 1));
            StagingMemory.Allocation second = Objects.requireNonNull(staging.allocate(PAGE));
            assertThat(second.offset()).isEqualTo(2 * PAGE);
            second.segment(PAGE).fill((byte) 7);
            MemorySegment read = arena.allocate(PAGE);
            assertThat(area.read(second.offset(), read)).isTrue();
            assertThat(read.mismatch(second.segment(PAGE))).isEqualTo(-1);
            assertThat(staging.allocate(7 * PAGE + 1)).as("more than there is").isNull();
            assertThat(staging.allocate(1L << 40)).isNull();
            first.free();
            second.free();
            assertThat(staging.isUnused()).isTrue();
            assertThatIllegalStateException().isThrownBy(first::free).withMessageContaining("twice");
            staging.release();
            assertThat(staging.allocate(1)).as("released").isNull();
        }
    }

    @Test
    void givenASpanThatSomebodyHas_whenTheServerAndTheSessionAreGone_thenItIsStillThere() throws IOException {
        StagingArea area = memory.createStagingArea(PAGE);
        StagingMemory staging = StagingMemory.open(memory.files(), place(area));
        StagingMemory.Allocation allocation = Objects.requireNonNull(staging.allocate(1));
        area.close();
        staging.release();
        allocation.segment(PAGE).fill((byte) 1);
        allocation.free();
    }

    @Test
    void givenAServerThatTellsOfAnotherFile_whenOpened_thenNothingIsWrittenTo() throws IOException {
        SharedMemoryFiles files = memory.files();
        try (StagingArea area = memory.createStagingArea(PAGE)) {
            StagingHeader mine = area.header();
            Path beside = folder.path().resolve("stage-x");
            Files.write(beside, new byte[2 * PAGE]);
            for (String other :
                    List.of(files.slots(), files.records(), "lock", "stage-x", "../stage-1-1", "/etc/passwd", "")) {
                assertThatThrownBy(() -> StagingMemory.open(files, new StagingDescriptor(PAGE, mine, other)))
                        .isInstanceOf(IOException.class)
                        .hasMessageContaining("allowed: stage-");
            }
            assertThatThrownBy(() -> StagingMemory.open(files, new StagingDescriptor(PAGE, mine, "stage-1-1")))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("is not a regular file of this user in");
            StagingHeader another = new StagingHeader(mine.ticket() + 1);
            assertThatThrownBy(() -> StagingMemory.open(files, new StagingDescriptor(PAGE, another, area.file())))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("its ticket differs");
            assertThatThrownBy(() -> StagingMemory.open(files, new StagingDescriptor(PAGE + 1, mine, area.file())))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("has 8192 bytes; allowed: 8193");
            for (long bytes : new long[] {0, Long.MAX_VALUE}) {
                assertThatThrownBy(() -> StagingMemory.open(files, new StagingDescriptor(bytes, mine, area.file())))
                        .isInstanceOf(IOException.class)
                        .hasMessageContaining("allowed: 1 to");
            }
            Files.delete(beside);
        }
    }

    @Test
    void givenPartsThatAreTakenAndGivenBack_whenComparedWithAMapOfPages_thenTheyNeverOverlap() {
        int pages = 64;
        SplittableRandom random = new SplittableRandom(20_261_122);
        FirstFitAllocator free = new FirstFitAllocator(pages);
        BitSet model = new BitSet(pages);
        List<long[]> held = new ArrayList<>();
        for (int step = 0; step < 20_000; step++) {
            if (held.isEmpty() || random.nextInt(5) > 1) {
                int size = 1 + random.nextInt(12);
                long offset = free.allocate(size);
                assertThat(offset).as("step %d", step).isEqualTo(first(model, pages, size));
                if (offset != FirstFitAllocator.NONE) {
                    model.set((int) offset, (int) (offset + size));
                    held.add(new long[] {offset, size});
                }
            } else {
                long[] back = held.remove(random.nextInt(held.size()));
                free.free(back[0], back[1]);
                model.clear((int) back[0], (int) (back[0] + back[1]));
            }
            assertThat(free.isUnused(pages)).isEqualTo(model.isEmpty());
        }
    }

    private static long first(BitSet used, int pages, int size) {
        for (int at = 0; at + size <= pages; at++) {
            int next = used.nextSetBit(at);
            if (next < 0 || next >= at + size) {
                return at;
            }
        }
        return FirstFitAllocator.NONE;
    }
}
