package io.kvcache.tiers;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// An embedder whose JVM has no flag for native access, or denies it.
@EnabledOnOs(OS.LINUX)
class NativeAccessTest {

    @Test
    void givenNoFlag_whenAStoreIsOpened_thenWorks() throws Exception {
        assertThat(child(List.of())).contains("stored 3 bytes");
    }

    @Test
    void givenNativeAccessDenied_whenAStoreIsOpened_thenTheErrorNamesTheFlag() throws Exception {
        assertThat(child(List.of("--illegal-native-access=deny")))
                .contains("refused: ")
                .contains("--enable-native-access=ALL-UNNAMED")
                .doesNotContain("stored");
    }

    @Test
    void givenNativeAccessDeniedToOthers_whenOurFlagIsThere_thenWorks() throws Exception {
        assertThat(child(List.of("--illegal-native-access=deny", "--enable-native-access=ALL-UNNAMED")))
                .contains("stored 3 bytes")
                .doesNotContain("WARNING");
    }

    private static String child(List<String> flags) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        String classes = Stream.of(KvCache.class, TieredKvCache.class, Caffeine.class, Embedder.class)
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

    /// The program of the child: stores one object, checked segments included, and says how it went.
    static final class Embedder {

        private Embedder() {}

        public static void main(String[] arguments) {
            Namespace space = Namespace.objects("objects", "");
            try (TieredKvCache cache = TieredKvCache.builder()
                    .hostBytes(32 << 20)
                    .checkSegments(true)
                    .build()) {
                cache.register(space);
                try (var writer = cache.putObject(space, new byte[] {1}, 3, KvCache.NO_WAIT)) {
                    writer.copyFrom(MemorySegment.ofArray(new byte[] {1, 2, 3}));
                    writer.seal();
                }
                try (var view = cache.getObject(space, new byte[] {1})) {
                    System.out.println("stored " + (view == null ? 0 : view.bytes()) + " bytes");
                }
            } catch (IllegalStateException refused) {
                System.out.println("refused: " + refused.getMessage());
            }
        }
    }
}
