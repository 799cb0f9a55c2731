package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.tiers.directory.ChildJvm;
import io.kvcache.tiers.memory.SharedMemorySource.AbandonedFolder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// What killed stores leave behind is found and removed, and nothing else is.
@EnabledOnOs(OS.LINUX)
final class AbandonedMemoryTest {

    private static final long SLOTS = 1 << 20;

    @TempDir
    private Path above = Path.of("");

    private Path folder() {
        return above.resolve("store");
    }

    private List<Path> found() {
        return SharedMemorySource.abandoned(above).stream()
                .map(AbandonedFolder::folder)
                .toList();
    }

    private void leaveBehind() throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Store.class, folder().toString())) {
            assertThat(child.line()).isEqualTo("open");
            child.kill();
        }
    }

    @Test
    @Tag("slow")
    void givenAStoreOfAnotherProcess_whenItIsKilled_thenItsFolderIsRemoved() throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Store.class, folder().toString())) {
            assertThat(child.line()).isEqualTo("open");
            assertThat(SharedMemorySource.removeAbandoned(above)).as("it lives").isEmpty();
            child.kill();
        }
        long bytes = SLOTS + records();
        assertThat(SharedMemorySource.abandoned(above))
                .containsExactly(new AbandonedFolder(folder(), bytes, List.of()));
        assertThat(SharedMemorySource.removeAbandoned(above))
                .containsExactly(new AbandonedFolder(folder(), bytes, List.of()));
        assertThat(above).isEmptyDirectory();
    }

    private long records() throws IOException {
        try (Stream<Path> files = Files.list(folder())) {
            return Files.size(files.filter(each -> each.toString().contains("records-"))
                    .findFirst()
                    .orElseThrow());
        }
    }

    @Test
    @Tag("slow")
    void givenAKilledStore_whenAProcessHasItMapped_thenItStaysUntilItHasNot() throws IOException {
        leaveBehind();
        try (Arena arena = Arena.ofConfined()) {
            map(arena);
            assertThat(SharedMemorySource.removeAbandoned(above)).isEmpty();
            assertThat(SharedMemorySource.abandoned(above))
                    .singleElement()
                    .extracting(AbandonedFolder::mappedBy)
                    .isEqualTo(List.of(ProcessHandle.current().pid()));
            assertThat(folder()).isDirectoryContaining("glob:**lock");
        }
        assertThat(SharedMemorySource.removeAbandoned(above)).hasSize(1);
    }

    private void map(Arena arena) throws IOException {
        try (Stream<Path> files = Files.list(folder())) {
            Path slots = files.filter(each -> each.toString().contains("slots-"))
                    .findFirst()
                    .orElseThrow();
            try (FileChannel channel = FileChannel.open(slots, StandardOpenOption.READ)) {
                channel.map(FileChannel.MapMode.READ_ONLY, 0, SLOTS, arena);
            }
        }
    }

    @Test
    void givenAStoreOfThisProcess_whenLookedFor_thenItsLockStays() throws IOException {
        try (OpenStore _ = OpenStore.in(folder())) {
            assertThat(SharedMemorySource.removeAbandoned(above)).isEmpty();
            try (ChildJvm child = new ChildJvm(List.of(), Store.class, folder().toString())) {
                assertThat(child.line()).contains("belongs to another store that runs");
            }
        }
    }

    @Test
    void givenFoldersThatOnlyLookAlike_whenLookedFor_thenTheyStay() throws IOException {
        Path other = folder("with-another-file", "rwx------");
        Files.writeString(other.resolve("mine"), "not a store's");
        folder("open-to-others", "rwxr-xr-x");
        Path unlocked = folder("without-a-lock", "rwx------");
        Files.delete(unlocked.resolve("lock"));
        Files.createSymbolicLink(above.resolve("link"), folder("of-a-killed-store", "rwx------"));
        assertThat(found()).containsExactly(above.resolve("of-a-killed-store"));
        assertThat(SharedMemorySource.abandoned(above.resolve("nowhere"))).isEmpty();
    }

    private Path folder(String name, String mode) throws IOException {
        Path made = Files.createDirectory(above.resolve(name));
        Files.setPosixFilePermissions(made, PosixFilePermissions.fromString(mode));
        Files.writeString(made.resolve("lock"), " ");
        Files.writeString(made.resolve("slots-1-0"), "left");
        return made;
    }

    private record OpenStore(HostMemory records, HostMemory slots) implements AutoCloseable {

        static OpenStore in(Path folder) {
            SharedMemorySource source = new SharedMemorySource(folder, 7);
            HostMemory records = source.reserve("records", RecordLayout.spanBytes(10));
            return new OpenStore(records, source.reserve("slots", SLOTS));
        }

        @Override
        public void close() {
            slots.close();
            records.close();
        }
    }

    /// Opens a store in a folder, and keeps it until it is killed or told to go on.
    static final class Store {

        private Store() {}

        @SuppressWarnings("SystemOut") // that is how a child speaks
        public static void main(String[] arguments) throws IOException {
            try (OpenStore _ = OpenStore.in(Path.of(arguments[0]))) {
                System.out.println("open");
                System.in.read();
            } catch (IllegalStateException refused) {
                System.out.println(refused.getMessage());
            }
        }
    }
}
