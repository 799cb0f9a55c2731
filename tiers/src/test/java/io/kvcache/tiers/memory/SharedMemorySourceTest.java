package io.kvcache.tiers.memory;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.tree.IndexHeader;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.tiers.memory.SharedMemorySource.SpaceReservation;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class SharedMemorySourceTest {

    private static final int RECORDS = 100;
    private static final long SLOTS = 1 << 20;

    @TempDir
    private Path parent = Path.of("");

    private SharedMemorySource source() {
        return new SharedMemorySource(parent.resolve("store"), 7);
    }

    private static HostMemory records(SharedMemorySource source) {
        return source.reserve("records", RecordLayout.spanBytes(RECORDS));
    }

    private List<String> left() throws IOException {
        try (Stream<Path> all = Files.list(parent.resolve("store"))) {
            return all.map(each -> each.getFileName().toString()).sorted().toList();
        }
    }

    private static MemorySegment mapped(SharedMemoryFiles files, Arena arena) throws IOException {
        Path path = Path.of(files.directory(), files.records());
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        }
    }

    @Test
    void givenAPublishedStore_whenItsHeaderIsRead_thenItSaysWhatThereIs() throws IOException {
        SharedMemorySource source = source();
        try (Arena arena = Arena.ofConfined();
                HostMemory slots = source.reserve("slots", SLOTS);
                HostMemory records = records(source)) {
            assertThat(slots.segment().byteSize()).isEqualTo(SLOTS);
            assertThat(records.segment().address() % 4096).isZero();
            IndexHeader header = IndexHeader.read(mapped(source.publish(RECORDS, true), arena));
            assertThat(header).isEqualTo(new IndexHeader(7, RECORDS, SLOTS, true, source.proof()));
        }
    }

    @Test
    void givenAStoreThatIsClosed_whenItsHeaderIsRead_thenItIsRefused() throws IOException {
        SharedMemorySource source = source();
        try (Arena arena = Arena.ofConfined()) {
            HostMemory slots = source.reserve("slots", SLOTS);
            HostMemory records = records(source);
            MemorySegment seen = mapped(source.publish(RECORDS, false), arena);
            slots.close();
            records.close();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> IndexHeader.read(seen))
                    .withMessageContaining("state of a shared index is 0; allowed: 1");
        }
        assertThat(parent).as("it was made, and is gone").isEmptyDirectory();
    }

    @Test
    void givenManyValues_whenTheirSpaceIsAwaited_thenAllOfItIsTaken() throws IOException {
        long bytes = SpaceReservation.AT_ONCE_BYTES + (100 << 20);
        try (HostMemory slots = source().reserve("slots", bytes)) {
            assertThat(slots.segment().byteSize()).isEqualTo(bytes);
            assertThat(slots.awaitSpace(bytes)).isTrue();
            String name = "slots-" + ProcessHandle.current().pid() + "-0";
            Process stat = new ProcessBuilder(
                            "stat",
                            "-c",
                            "%b",
                            parent.resolve("store").resolve(name).toString())
                    .start();
            long blocks = Long.parseLong(new String(stat.getInputStream().readAllBytes(), UTF_8).strip());
            assertThat(blocks * 512).isGreaterThanOrEqualTo(bytes);
        }
    }

    @Test
    void givenFiles_whenOpen_thenOnlyTheirOwnerCanReachThem() throws IOException {
        SharedMemorySource source = source();
        try (HostMemory slots = source.reserve("slots", SLOTS);
                HostMemory records = records(source)) {
            assertThat(slots.describe()).contains("slots-");
            assertThat(records.describe()).contains("records-");
            for (String name : left()) {
                assertThat(permissions(parent.resolve("store").resolve(name))).isEqualTo("rw-------");
            }
            assertThat(permissions(parent.resolve("store"))).isEqualTo("rwx------");
        }
    }

    private static String permissions(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    @Test
    void givenAFolderThatAnotherStoreHas_whenReserved_thenItIsRefused() {
        SharedMemorySource first = source();
        HostMemory slots = first.reserve("slots", SLOTS);
        assertThatIllegalStateException()
                .isThrownBy(() -> source().reserve("slots", SLOTS))
                .withMessageContaining("belongs to another store that runs");
        slots.close();
        source().reserve("slots", SLOTS).close();
    }

    @Test
    void givenFilesOfAKilledStore_whenAnotherOpens_thenTheyAreGone() throws IOException {
        Path folder = privateFolder();
        Files.writeString(folder.resolve("slots-1-0"), "left");
        Files.writeString(folder.resolve("records-99999-3"), "left");
        Files.writeString(folder.resolve("stage-99999-1023"), "left");
        Files.writeString(folder.resolve("mine"), "not a store's");
        try (HostMemory slots = source().reserve("slots", SLOTS)) {
            String own = "slots-" + ProcessHandle.current().pid() + "-0";
            assertThat(slots.describe()).contains(own);
            assertThat(left()).containsExactly("lock", "mine", own);
        }
        assertThat(left()).as("what was there before stays").containsExactly("mine");
    }

    private Path privateFolder() throws IOException {
        return Files.createDirectory(
                parent.resolve("store"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    }

    @Test
    void givenAFolderThatWasThere_whenTheStoreCloses_thenItIsStillThereAndEmpty() throws IOException {
        Path folder = privateFolder();
        source().reserve("slots", SLOTS).close();
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenAFolderOfAKilledStore_whenTheNextOneCloses_thenItIsGone() throws IOException {
        Path folder = parent.resolve("store");
        HostMemory killed = source().reserve("slots", SLOTS);
        Path copy = Files.createDirectory(
                parent.resolve("killed"), PosixFilePermissions.asFileAttribute(Files.getPosixFilePermissions(folder)));
        for (String each : left()) {
            Files.copy(folder.resolve(each), copy.resolve(each));
        }
        killed.close();
        assertThat(folder).doesNotExist();
        Files.move(copy, folder);
        source().reserve("slots", SLOTS).close();
        assertThat(folder).doesNotExist();
    }

    @Test
    void givenTooLittleSpace_whenReserved_thenTheErrorNamesBothSizesAndNothingStays() throws IOException {
        SharedMemorySource source = source();
        assertThatIllegalStateException()
                .isThrownBy(() -> source.reserve("slots", 1L << 50))
                .withMessageContaining("Cannot reserve 1.0 PiB (1125899906842624 bytes)")
                .withMessageMatching("(?s).* has only [0-9.]+ .iB \\([0-9]+ bytes\\) left.*ENOSPC.*");
        assertThat(parent).as("nothing stays").isEmptyDirectory();
        source().reserve("slots", SLOTS).close();
    }
}
