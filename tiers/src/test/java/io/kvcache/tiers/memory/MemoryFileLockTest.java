package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.tiers.directory.ChildJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A store's files in an in-memory file system are safe from other stores, of the same or another process.
@EnabledOnOs(OS.LINUX)
final class MemoryFileLockTest {

    private static final long BYTES = 1 << 20;
    private static final String TAKEN = "belongs to another store that runs; name another";

    @TempDir
    private Path above = Path.of("");

    /// How the memory of a store has a name.
    enum Kind {
        FOLDER,
        FILE;

        HostMemorySource source(Path above) {
            return switch (this) {
                case FOLDER -> new SharedMemorySource(above.resolve("store"), 7);
                case FILE -> new NamedMemorySource(above, "values");
            };
        }

        HostMemory open(Path above) {
            return source(above).reserve("slots", BYTES);
        }
    }

    private String inAnotherProcess(Kind kind) throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Opener.class, kind.name(), above.toString())) {
            return child.line();
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    @Tag("slow")
    void givenAStoreThatRuns_whenOthersOpenTheSame_thenAllAreRefusedUntilItIsClosed(Kind kind) throws IOException {
        try (HostMemory memory = kind.open(above)) {
            assertThat(inAnotherProcess(kind)).contains(TAKEN);
            assertThatIllegalStateException().isThrownBy(() -> kind.open(above)).withMessageContaining(TAKEN);
            assertThat(inAnotherProcess(kind)).as("after a refusal here").contains(TAKEN);
            String file = memory.describe().replaceAll("file ([^,]*),.*", "$1");
            assertThat(Path.of(file)).exists();
        }
        assertThat(inAnotherProcess(kind)).isEqualTo("open");
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void givenAStoreOfAnotherProcess_whenItIsKilled_thenItsPlaceIsFreeAndCleared(Kind kind) throws IOException {
        try (ChildJvm child = new ChildJvm(List.of(), Opener.class, kind.name(), above.toString())) {
            assertThat(child.line()).isEqualTo("open");
            assertThatIllegalStateException().isThrownBy(() -> kind.open(above)).withMessageContaining(TAKEN);
            child.kill();
        }
        try (HostMemory memory = kind.open(above)) {
            assertThat(memory.segment().byteSize()).isEqualTo(BYTES);
        }
        assertThat(Files.exists(above.resolve("values"))).isFalse();
    }

    /// Opens what it is told to, says so or why not, and keeps it until it is killed or told to go on.
    static final class Opener {

        private Opener() {}

        @SuppressWarnings("SystemOut") // that is how a child speaks
        public static void main(String[] arguments) throws IOException {
            try (HostMemory _ = Kind.valueOf(arguments[0]).open(Path.of(arguments[1]))) {
                System.out.println("open");
                System.in.read();
            } catch (IllegalStateException refused) {
                System.out.println(refused.getMessage());
            }
        }
    }
}
