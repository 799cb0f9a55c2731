package io.kvcache.tiers.directory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A directory can be opened once at a time, within a process and across processes.
@EnabledOnOs(OS.LINUX)
final class DirectoryLockTest {

    private static final long BYTES = 6L << 20;

    @TempDir
    private Path above;

    private DiskDirectory open(Path folder) {
        return DiskDirectory.open(folder, BYTES, DirectoryOptions.defaults());
    }

    private void requireTaken(Path folder, String by) {
        assertThatExceptionOfType(DiskDirectoryException.class)
                .isThrownBy(() -> open(folder))
                .withMessageContaining(folder.toString())
                .withMessageContaining(by);
    }

    @Test
    void givenAnOpenDirectory_whenOpenedOnceMoreInThisProcess_thenRefusedUnderAnyNameUntilItIsClosed()
            throws IOException {
        Path folder = above.resolve("disk");
        try (DiskDirectory _ = open(folder)) {
            Path other = Files.createSymbolicLink(above.resolve("other"), folder);
            requireTaken(folder, "this process has it open already");
            requireTaken(other, "this process has it open already");
            assertThatExceptionOfType(DiskDirectoryException.class)
                    .isThrownBy(() -> DiskDirectory.openExisting(folder, DirectoryOptions.defaults()));
        }
        open(folder).close();
    }

    @Test
    void givenARefusedOpening_whenOpenedAgain_thenTheLockWasLetGo() throws IOException {
        Path folder = Files.createDirectory(above.resolve("disk"));
        Files.writeString(folder.resolve("tier"), "somebody's");
        assertThatExceptionOfType(DiskDirectoryException.class).isThrownBy(() -> open(folder));
        Files.delete(folder.resolve("tier"));
        open(folder).close();
    }

    @Test
    void givenADirectoryThatAnotherProcessHas_whenOpened_thenItsNumberIsNamedUntilItIsKilled() throws Exception {
        Path folder = above.resolve("disk");
        try (ChildJvm child = new ChildJvm(List.of(), Holder.class, folder.toString())) {
            assertThat(child.line()).isEqualTo("open");
            requireTaken(folder, "process " + child.pid() + " has it open");
            requireTaken(folder, "process " + child.pid() + " has it open");
            child.kill();
            open(folder).close();
        }
    }

    @Test
    void givenADirectoryOpenHere_whenAnotherOpeningHereIsRefused_thenOtherProcessesAreStillKeptOut() throws Exception {
        Path folder = above.resolve("disk");
        try (DiskDirectory _ = open(folder)) {
            requireTaken(folder, "this process");
            try (ChildJvm child = new ChildJvm(List.of(), Holder.class, folder.toString())) {
                assertThat(child.line())
                        .contains("process " + ProcessHandle.current().pid() + " has it open");
            }
        }
    }

    @Test
    void givenTwoThreads_whenEachTakesTheLockOverAndOver_thenOneHasItAndTheOtherIsToldSo() throws Exception {
        Path folder = Files.createDirectory(above.resolve("disk"));
        AtomicInteger holders = new AtomicInteger();
        Callable<Integer> work = () -> {
            int taken = 0;
            for (int i = 0; i < 1000; i++) {
                try (DirectoryLock _ = DirectoryLock.acquire(folder)) {
                    assertThat(holders.incrementAndGet()).isOne();
                    taken++;
                    holders.decrementAndGet();
                } catch (DiskDirectoryException refused) {
                    assertThat(refused).hasMessageContaining("this process has it open already");
                }
            }
            return taken;
        };
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Future<Integer> other = threads.submit(work);
            assertThat(threads.submit(work).get() + other.get()).isPositive();
        }
    }

    /// Opens a directory, says so or why not, and keeps it until it is told to go on.
    static final class Holder {

        private Holder() {}

        public static void main(String[] arguments) throws IOException {
            try (DiskDirectory _ = DiskDirectory.open(Path.of(arguments[0]), BYTES, DirectoryOptions.defaults())) {
                System.out.println("open");
                System.in.read();
            } catch (DiskDirectoryException refused) {
                System.out.println(refused.getMessage());
            }
        }
    }
}
