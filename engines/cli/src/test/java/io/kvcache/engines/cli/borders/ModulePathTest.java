package io.kvcache.engines.cli.borders;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A program of an embedder, compiled and run as a module and by the class path.
@Tag("slow")
final class ModulePathTest {

    private static final Pattern LIBRARIES =
            Pattern.compile("(caffeine|HdrHistogram|jspecify|aeron-client|aeron-driver|agrona)-[0-9].*\\.jar");

    private static final String DESCRIPTOR = """
            module example {
                requires io.kvcache.tiers;
                requires io.kvcache.transport;
            }
            """;

    private static final String PROGRAM = """
            package example;

            import io.kvcache.core.BlockTable;
            import io.kvcache.core.BlockWriter;
            import io.kvcache.core.KvCache;
            import io.kvcache.core.identity.BlockChain;
            import io.kvcache.core.identity.BlockShape;
            import io.kvcache.core.identity.Dtype;
            import io.kvcache.core.identity.Namespace;
            import io.kvcache.core.policy.PolicyKind;
            import io.kvcache.tiers.TieredKvCache;
            import io.kvcache.transport.client.RemoteKvCache;
            import java.lang.foreign.ValueLayout;

            public final class Example {

                public static void main(String[] arguments) {
                    System.out.println("in " + KvCache.class.getModule());
                    Namespace model = Namespace.of("model", BlockShape.kv(1, 1, 8, 16, Dtype.BF16));
                    try (KvCache cache = TieredKvCache.builder()
                            .hostBytes(64L << 20)
                            .policy(PolicyKind.LRU)
                            .build()) {
                        cache.register(model);
                        BlockChain chain = cache.chain(model, new int[16]);
                        try (BlockWriter writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
                            writer.segment().fill((byte) 7);
                            writer.seal();
                        }
                        try (BlockTable table = cache.acquire(chain)) {
                            System.out.println("read " + table.segment(0).get(ValueLayout.JAVA_BYTE, 0));
                        }
                    }
                    System.out.println("ucx " + RemoteKvCache.builder("ucx:127.0.0.1:7420"));
                    try {
                        RemoteKvCache.builder("aeron:ipc?dir=/none");
                    } catch (IllegalStateException refused) {
                        System.out.println(refused.getMessage());
                    }
                }
            }
            """;

    private static final String INTRUDER = """
            package example;

            public final class Intruder {

                public static void main(String[] arguments) {
                    System.out.println("saw " + io.kvcache.core.store.HostStore.class.getName());
                }
            }
            """;

    @TempDir
    private Path folder;

    @Test
    void givenAProgramAsAModule_whenRun_thenItsBlockComesBackAndCarriersAreFound() throws Exception {
        assertThat(compile("--module-path", DESCRIPTOR, PROGRAM)).isEmpty();

        assertThat(run(
                        "--enable-native-access=io.kvcache.tiers",
                        "--module-path",
                        path() + File.pathSeparator + folder.resolve("classes"),
                        "--module",
                        "example/example.Example"))
                .startsWith("in module io.kvcache.core")
                .contains("read 7", "ucx io.kvcache.transport.client.RemoteKvCacheBuilder")
                .contains("--add-exports java.base/jdk.internal.misc=org.agrona");
    }

    @Test
    void givenTheSameProgramOnTheClassPath_whenRun_thenItsBlockComesBack() throws Exception {
        assertThat(compile("--class-path", PROGRAM)).isEmpty();

        assertThat(run(
                        "--enable-native-access=ALL-UNNAMED",
                        "--class-path",
                        path() + File.pathSeparator + folder.resolve("classes"),
                        "example.Example"))
                .startsWith("in unnamed module")
                .contains("read 7", "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED");
    }

    @Test
    void givenAnInternalType_whenAModuleNamesIt_thenTheCompilerRefusesIt() throws Exception {
        assertThat(compile("--class-path", INTRUDER))
                .as("where there are no modules")
                .isEmpty();
        assertThat(compile("--module-path", DESCRIPTOR, INTRUDER))
                .contains("package io.kvcache.core.store is not visible");
    }

    /// Compiles sources, each named after the type in it.
    ///
    /// @return what the compiler says; empty when all is well
    private String compile(String option, String... sources) throws IOException {
        List<String> arguments = new ArrayList<>(
                List.of(option, path(), "-d", folder.resolve("classes").toString()));
        for (String source : sources) {
            String name =
                    source.startsWith("module") ? "module-info" : source.replaceAll("(?s).* class (\\w+).*", "$1");
            Path file = folder.resolve("sources").resolve(name + ".java");
            Files.createDirectories(file.getParent());
            arguments.add(Files.writeString(file, source).toString());
        }
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ToolProvider.getSystemJavaCompiler().run(null, said, said, arguments.toArray(String[]::new));
        return said.toString(UTF_8);
    }

    private String run(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(TestJvm.program(), "-Xmx256m"));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        return said;
    }

    /// Our modules, and the libraries that they require.
    private static String path() {
        Stream<String> ours = Stream.of(
                        KvCache.class, TieredKvCache.class, RemoteKvCache.class, AeronEndpoint.class, UcxMemory.class)
                .map(type ->
                        type.getProtectionDomain().getCodeSource().getLocation().getPath());
        Stream<String> libraries = Stream.of(
                        System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> LIBRARIES
                        .matcher(Path.of(entry).getFileName().toString())
                        .matches());
        return Stream.concat(ours, libraries).collect(Collectors.joining(File.pathSeparator));
    }
}
