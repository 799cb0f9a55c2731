package io.kvcache.server.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.cluster.Membership;
import io.kvcache.core.KvCache;
import io.kvcache.server.CacheServer;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The server ships alone: no engine, no laboratory, no JMH, no GPU, no test-jar.
///
/// Maven writes the libraries that it resolves for the runtime into a file before the tests run. A new library of the
/// server, also a transitive one, needs a line here.
@Tag("slow")
final class ServerClassPathTest {

    private static final Path RESOLVED = Path.of("target", "run-classpath.txt");

    /// Group, artifact, type, classifier (in some), version and scope.
    private static final Pattern ARTIFACT =
            Pattern.compile("\\s+[^:\\s]+:([^:]+):([^:]+)(?::([^:]+))?:[^:]+:(?:compile|runtime)\\b.*");

    private static final List<String> EXPECTED = List.of(
            "HdrHistogram",
            "aeron-client",
            "aeron-driver",
            "agrona",
            "bootstrap",
            "caffeine",
            "chart.js",
            "error_prone_annotations",
            "jackson-annotations",
            "jackson-core",
            "jackson-databind",
            "jeromq",
            "jgroups",
            "jline-terminal",
            "jline-terminal-ffm",
            "jspecify",
            "kvcache-cluster",
            "kvcache-core",
            "kvcache-tiers",
            "kvcache-transport",
            "kvcache-transport-aeron",
            "kvcache-transport-ucx",
            "micrometer-commons",
            "micrometer-core",
            "micrometer-observation",
            "micrometer-registry-prometheus",
            "msgpack-core",
            "netty-buffer",
            "netty-codec-base",
            "netty-codec-http",
            "netty-common",
            "netty-handler",
            "netty-resolver",
            "netty-transport",
            "netty-transport-classes-epoll",
            "netty-transport-classes-io_uring",
            "netty-transport-native-epoll:linux-aarch_64",
            "netty-transport-native-epoll:linux-x86_64",
            "netty-transport-native-io_uring:linux-aarch_64",
            "netty-transport-native-io_uring:linux-x86_64",
            "netty-transport-native-unix-common",
            "picocli",
            "prometheus-metrics-config",
            "prometheus-metrics-core",
            "prometheus-metrics-exposition-textformats",
            "prometheus-metrics-model",
            "prometheus-metrics-tracer-common",
            "snakeyaml-engine");

    /// Files that the shade plug-in leaves out of the one jar, as server/pom.xml lists them.
    private static final Pattern DROPPED = Pattern.compile(
            "META-INF/(MANIFEST\\.MF|INDEX\\.LIST|[^/]+\\.(SF|RSA|DSA|EC)|SIG-.*)|(META-INF/versions/\\d+/)?module-info\\.class");

    /// Files that the shade plug-in joins, by the transformers of server/pom.xml.
    private static final Pattern JOINED =
            Pattern.compile("META-INF/(LICENSE|NOTICE|io\\.netty\\.versions\\.properties|services/.+)");

    /// The roots of the server's modules, then its libraries' jars, as this JVM loads them.
    private static List<Path> shippedRoots() throws URISyntaxException {
        List<Path> roots = new ArrayList<>();
        for (Class<?> each : List.of(
                CacheServer.class,
                TieredKvCache.class,
                RemoteKvCache.class,
                AeronEndpoint.class,
                UcxMemory.class,
                Membership.class,
                KvCache.class)) {
            roots.add(Path.of(
                    each.getProtectionDomain().getCodeSource().getLocation().toURI()));
        }
        List<Path> classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .toList();
        for (String artifact : EXPECTED) {
            Predicate<String> isItsJar = jarName(artifact).asMatchPredicate();
            classPath.stream()
                    .filter(each -> isItsJar.test(each.getFileName().toString()))
                    .findFirst()
                    .ifPresent(roots::add);
        }
        return roots.stream().distinct().toList();
    }

    private static Pattern jarName(String artifact) {
        String[] parts = artifact.split(":", -1);
        String classifier = parts.length == 1 ? "" : "-" + Pattern.quote(parts[1]);
        return Pattern.compile(Pattern.quote(parts[0]) + "-[0-9][^-]*(-SNAPSHOT)?" + classifier + "\\.jar");
    }

    /// Adds the files of a jar or directory, by name.
    private static void addFiles(Path root, Map<String, Map<Path, String>> contents) throws Exception {
        if (Files.isDirectory(root)) {
            addFiles(root, root, contents);
            return;
        }
        try (FileSystem jar = FileSystems.newFileSystem(root)) {
            addFiles(root, jar.getPath("/"), contents);
        }
    }

    private static void addFiles(Path root, Path top, Map<String, Map<Path, String>> contents) throws Exception {
        List<Path> files;
        try (Stream<Path> all = Files.walk(top)) {
            files = all.filter(Files::isRegularFile).toList();
        }
        for (Path file : files) {
            String name = top.relativize(file).toString().replace(File.separatorChar, '/');
            if (!DROPPED.matcher(name).matches() && !JOINED.matcher(name).matches()) {
                byte[] hash = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
                contents.computeIfAbsent(name, _ -> new TreeMap<>())
                        .put(root, HexFormat.of().formatHex(hash));
            }
        }
    }

    /// Artifacts by name, with the classifier after a colon, and the type unless it is a jar.
    private static List<String> resolved() throws IOException {
        assumeThat(RESOLVED).as("what Maven resolves").exists();
        return Files.readAllLines(RESOLVED).stream()
                .map(ARTIFACT::matcher)
                .filter(matcher -> matcher.matches())
                .map(artifact -> artifact.group(1)
                        + (artifact.group(3) == null ? "" : ":" + artifact.group(3))
                        + (artifact.group(2).equals("jar") ? "" : " of type " + artifact.group(2)))
                .sorted()
                .toList();
    }

    @Test
    void givenTheServersPom_whenResolvedForTheRuntime_thenTheseLibrariesShipAndNoOther() throws IOException {
        assertThat(resolved()).containsExactlyElementsOf(EXPECTED);
    }

    /// The shade plug-in keeps one of two files with the same name and only warns.
    @Test
    void givenTheServersLibraries_whenMergedIntoOneJar_thenNoFileReplacesADifferentOne() throws Exception {
        List<Path> roots = shippedRoots();
        assertThat(roots)
                .as("modules and libraries on the class path")
                .hasSizeGreaterThanOrEqualTo(EXPECTED.size() + 1);
        Map<String, Map<Path, String>> contents = new TreeMap<>();
        for (Path root : roots) {
            addFiles(root, contents);
        }

        contents.values().removeIf(byRoot -> Set.copyOf(byRoot.values()).size() == 1);

        assertThat(contents)
                .as(
                        "files that differ between jars; add a transformer or a filter to server/pom.xml, and the name here")
                .isEmpty();
    }

    @Test
    void givenTheServersPom_whenResolvedForTheRuntime_thenNothingOfLaboratoryEnginesOrTestsShips() throws IOException {
        assertThat(resolved())
                .isNotEmpty()
                .noneMatch(artifact -> Pattern.compile("jlama|llama|jmh|test|gpu|jcuda|bench|junit|assertj")
                        .matcher(artifact)
                        .find());
    }
}
