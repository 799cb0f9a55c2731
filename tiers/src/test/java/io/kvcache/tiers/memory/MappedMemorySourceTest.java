package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import io.kvcache.tiers.options.MemoryOptions.HugePages;
import io.kvcache.tiers.os.Libc;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@EnabledOnOs(OS.LINUX)
class MappedMemorySourceTest {

    private static final long BYTES = (4L << 20) + 1;

    @TempDir
    private Path folder;

    @ParameterizedTest
    @EnumSource
    void givenBacking_whenReserved_thenTheWholeSpanIsAlignedZeroedAndWritable(Backing backing) {
        try (MappedMemory memory = source(backing).reserve("slots", BYTES)) {
            MemorySegment segment = memory.segment();
            assertThat(segment.byteSize()).isEqualTo(BYTES);
            assertThat(segment.address() % 4096).isZero();
            assertThat(segment.mismatch(MemorySegment.ofArray(new byte[(int) BYTES])))
                    .isEqualTo(-1);
            segment.fill((byte) 7);
            assertThat(segment.get(JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 7);
        }
    }

    @ParameterizedTest
    @EnumSource
    void givenClosedMemory_whenRead_thenThrowsAndNothingCrashes(Backing backing) {
        MappedMemory memory = source(backing).reserve("slots", BYTES);
        MemorySegment segment = memory.segment();
        memory.close();
        assertThatIllegalStateException().isThrownBy(() -> segment.get(JAVA_BYTE, 0));
    }

    @ParameterizedTest
    @EnumSource
    void givenClosedMemory_whenClosedAgain_thenNothingHappens(Backing backing) {
        MappedMemory memory = source(backing).reserve("slots", BYTES);
        memory.close();
        assertThatCode(memory::close).doesNotThrowAnyException();
    }

    @ParameterizedTest
    @EnumSource(names = {"MEMFD", "SHM_FILE"})
    void givenSharedMemory_whenItsPathIsMappedAgain_thenBothSeeTheSameBytes(Backing backing) throws IOException {
        try (MappedMemory memory = source(backing).reserve("slots", BYTES);
                Arena arena = Arena.ofConfined();
                FileChannel peer = FileChannel.open(memory.sharedPath().orElseThrow(), StandardOpenOption.READ)) {
            MemorySegment view = peer.map(MapMode.READ_ONLY, 0, peer.size(), arena);
            memory.segment().set(JAVA_LONG, 4096, 0xcafeL);
            assertThat(view.byteSize()).isEqualTo(BYTES);
            assertThat(view.get(JAVA_LONG, 4096)).isEqualTo(0xcafeL);
        }
    }

    @Test
    void givenMemfd_whenAPeerShrinksOrGrowsIt_thenTheSealRefuses() throws IOException {
        try (MappedMemory memory = source(Backing.MEMFD).reserve("slots", BYTES);
                FileChannel peer = FileChannel.open(memory.sharedPath().orElseThrow(), StandardOpenOption.WRITE)) {
            assertThat(memory.describe()).startsWith("memfd ");
            assertThatIOException().isThrownBy(() -> peer.truncate(0));
            assertThatIOException().isThrownBy(() -> peer.write(ByteBuffer.allocate(1), BYTES + 8192));
        }
    }

    @Test
    void givenMemfd_whenClosed_thenItsDescriptorIsGone() throws IOException {
        MappedMemory memory = source(Backing.MEMFD).reserve("slots", BYTES);
        Path path = memory.sharedPath().orElseThrow();
        assertThat(isMemfd(path)).isTrue();
        memory.close();
        assertThat(isMemfd(path)).isFalse();
    }

    /// Returns whether the path is that of an open memfd; another thread may have opened something else under its
    /// number.
    static boolean isMemfd(Path path) throws IOException {
        try {
            return Files.readSymbolicLink(path).toString().contains("memfd:kvcache-slots");
        } catch (NoSuchFileException closed) {
            return false;
        }
    }

    @Test
    void givenAnonymousMemory_whenAskedForItsPath_thenThereIsNone() {
        try (MappedMemory memory = source(Backing.ANONYMOUS).reserve("slots", BYTES)) {
            assertThat(memory.sharedPath()).isEmpty();
        }
    }

    @Test
    void givenMoreThanTheMachineHas_whenReserved_thenTheErrorNamesPurposeSizeCauseAndAdvice() {
        assertThatIllegalStateException()
                .isThrownBy(() -> source(Backing.ANONYMOUS).reserve("slots", 1L << 50))
                .withMessage("Cannot reserve 1.0 PiB (1125899906842624 bytes) of host memory for 'slots': mmap gave "
                        + "ENOMEM (12): ask for less, or raise the memory limit (free memory, vm.overcommit_memory, "
                        + "ulimit -v)");
    }

    @Test
    void givenPurposeThatIsNoWord_whenReserved_thenIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> source(Backing.SHM_FILE).reserve("../slots", BYTES))
                .withMessageContaining("'../slots'");
    }

    @Test
    void givenPlatformWithoutMmap_whenReservedAnonymously_thenTheJvmAllocates() {
        MappedMemorySource source = new MappedMemorySource(MemoryOptions.defaults(), Libc.bind(_ -> Optional.empty()));
        try (MappedMemory memory = source.reserve("slots", BYTES)) {
            assertThat(memory.describe()).isEqualTo("allocated by the JVM");
            assertThat(memory.segment().address() % 4096).isZero();
            memory.segment().fill((byte) 1);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"MEMFD", "SHM_FILE"})
    void givenPlatformWithoutTheCalls_whenReservedShared_thenTheErrorSaysWhatWorks(Backing backing) {
        MemoryOptions options = MemoryOptions.defaults().withBacking(backing);
        MappedMemorySource source = new MappedMemorySource(options, Libc.unavailable());
        assertThatIllegalStateException()
                .isThrownBy(() -> source.reserve("slots", BYTES))
                .withMessageContaining("gave ENOSYS (38)")
                .withMessageContaining("anonymous memory works everywhere");
    }

    private MappedMemorySource source(Backing backing) {
        return new MappedMemorySource(new MemoryOptions(backing, HugePages.AUTO, folder.resolve("shm")));
    }
}
