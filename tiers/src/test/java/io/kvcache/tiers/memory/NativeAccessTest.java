package io.kvcache.tiers.memory;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.HostMemory;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// What an embedder meets who starts the JVM without our flags.
@EnabledOnOs(OS.LINUX)
class NativeAccessTest {

    @Test
    void givenNoFlag_whenReserved_thenWorks() throws Exception {
        assertThat(child(List.of())).contains("reserved: anonymous");
    }

    @Test
    void givenNativeAccessDenied_whenReserved_thenTheErrorNamesTheFlag() throws Exception {
        assertThat(child(List.of("--illegal-native-access=deny")))
                .contains("refused: ")
                .contains("--enable-native-access=ALL-UNNAMED")
                .doesNotContain("reserved");
    }

    @Test
    void givenNativeAccessDeniedToOthers_whenOurFlagIsThere_thenWorks() throws Exception {
        assertThat(child(List.of("--illegal-native-access=deny", "--enable-native-access=ALL-UNNAMED")))
                .contains("reserved: anonymous")
                .doesNotContain("WARNING");
    }

    private static String child(List<String> flags) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        String classes = Stream.of(HostMemory.class, MappedMemorySource.class, Embedder.class)
                .map(NativeAccessTest::home)
                .collect(Collectors.joining(":"));
        List<String> command = Stream.of(
                        Stream.of(java.toString()), flags.stream(), Stream.of("-cp", classes, Embedder.class.getName()))
                .flatMap(part -> part)
                .toList();
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }

    private static String home(Class<?> type) {
        try {
            return Path.of(type.getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .toString();
        } catch (URISyntaxException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// The program of the child: reserves once and says how it went.
    static final class Embedder {

        private Embedder() {}

        public static void main(String[] arguments) {
            try (HostMemory memory = new MappedMemorySource(MemoryOptions.defaults()).reserve("slots", 1 << 20)) {
                memory.segment().fill((byte) 1);
                System.out.println("reserved: " + memory.describe());
            } catch (IllegalStateException refused) {
                System.out.println("refused: " + refused.getMessage());
            }
        }
    }
}
