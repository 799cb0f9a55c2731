package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.tiers.directory.ChildJvm;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A store's files in an in-memory file system are safe from other stores, of the same or another process.
@EnabledOnOs(OS.LINUX)
final class MemoryFileLockTest {

    private static final long BYTES = 1 << 20;
    private static final String TAKEN = "belongs to another store that runs; name another";

    @TempDir
    private Path above = Path.of("");

    private static HostMemory open(Path above) {
        return new SharedMemorySource(above.resolve("store"), 7).reserve("slots", BYTES);
    }

    private String inAnotherProcess() throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Opener.class, above.toString())) {
            return child.line();
        }
    }

    @Test
    @Tag("slow")
    void givenAStoreThatRuns_whenOthersOpenTheSame_thenAllAreRefusedUntilItIsClosed() throws IOException {
        try (HostMemory memory = open(above)) {
            assertThat(inAnotherProcess()).contains(TAKEN);
            assertThatIllegalStateException().isThrownBy(() -> open(above)).withMessageContaining(TAKEN);
            assertThat(inAnotherProcess()).as("after a refusal here").contains(TAKEN);
            String file = memory.describe().replaceAll("file ([^,]*),.*", "$1");
            assertThat(Path.of(file)).exists();
        }
        assertThat(inAnotherProcess()).isEqualTo("open");
    }

    @Test
    void givenAStoreOfAnotherProcess_whenItIsKilled_thenItsPlaceIsFreeAndCleared() throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Opener.class, above.toString())) {
            assertThat(child.line()).isEqualTo("open");
            assertThatIllegalStateException().isThrownBy(() -> open(above)).withMessageContaining(TAKEN);
            child.kill();
        }
        try (HostMemory memory = open(above)) {
            assertThat(memory.segment().byteSize()).isEqualTo(BYTES);
        }
        assertThat(above.resolve("store")).doesNotExist();
    }

    /// Opens what it is told to, says so or why not, and keeps it until it is killed or told to go on.
    static final class Opener {

        private Opener() {}

        @SuppressWarnings("SystemOut") // that is how a child speaks
        public static void main(String[] arguments) throws IOException {
            try (HostMemory _ = MemoryFileLockTest.open(Path.of(arguments[0]))) {
                System.out.println("open");
                System.in.read();
            } catch (IllegalStateException refused) {
                System.out.println(refused.getMessage());
            }
        }
    }
}
