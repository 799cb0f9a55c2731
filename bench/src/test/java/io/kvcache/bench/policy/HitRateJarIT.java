package io.kvcache.bench.policy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.cli.Kvcache;
import io.kvcache.core.contract.TestJvm;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The jar of hit rates that this build made, in a folder that holds a trace and a policy and nothing else.
/// Runs after `package` has left it.
final class HitRateJarIT {

    private static final Path JAR = Path.of("target", "kvcache-hitrate.jar").toAbsolutePath();
    private static final Path LRU_2 = Path.of("src/test/java/io/kvcache/bench/example/Lru2.java");
    private static final JsonMapper JSON = JsonMapper.shared();

    @TempDir
    private Path folder = Path.of("");

    private record Output(int exit, String out, String err) {}

    private Output run(String arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of("-Djmh.ignoreLock=true", "-jar", JAR.toString()));
        command.addAll(List.of(arguments.split(" ", -1)));
        Path errors = Files.createTempFile("hitrate", ".txt");
        ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
        builder.environment().clear();
        Process process = builder.redirectError(errors.toFile()).start();
        String out = new String(process.getInputStream().readAllBytes(), UTF_8);
        int exit = process.waitFor();
        String err = Files.readString(errors);
        Files.delete(errors);
        return new Output(exit, out, err);
    }

    /// The example of docs/embedding.md, compiled with the jar alone.
    private void compilePolicy(String className, String from, String to) throws IOException {
        Path source = folder.resolve("my").resolve(className + ".java");
        Files.createDirectories(source.getParent());
        Files.writeString(
                source,
                Files.readString(LRU_2)
                        .replaceFirst("package [^;]*;", "package my;")
                        .replace("Lru2", className)
                        .replace(from, to));
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assertThat(compiler.run(null, null, null, "-cp", JAR.toString(), source.toString()))
                .isZero();
    }

    /// Prompts that share beginnings, with partial last blocks.
    private Path writeTrace() throws IOException {
        Random random = new Random(1);
        List<String> lines = new ArrayList<>();
        for (int request = 0; request < 2000; request++) {
            int conversation = (int) (60 * random.nextDouble() * random.nextDouble());
            int blocks = 1 + random.nextInt(12);
            String ids = IntStream.range(0, blocks)
                    .mapToObj(block -> String.valueOf(block < 2 ? block : 100 * conversation + block))
                    .collect(Collectors.joining(","));
            lines.add("{\"timestamp\":%d,\"input_length\":%d,\"output_length\":10,\"hash_ids\":[%s]}"
                    .formatted(request * 100, 512 * blocks - random.nextInt(512), ids));
        }
        return Files.write(folder.resolve("my.jsonl"), lines);
    }

    /// Policy, rule and blocks of each replay, with its ratio as it is printed.
    private static Map<String, String> replayed(String arguments) {
        StringWriter out = new StringWriter();
        CommandLine line = Kvcache.commandLine().setOut(new PrintWriter(out));
        assertThat(line.execute(arguments.split(" ", -1))).isZero();
        Map<String, String> ratios = new TreeMap<>();
        out.toString()
                .lines()
                .map(JSON::readTree)
                .forEach(each -> ratios.put(
                        "%s %s %s"
                                .formatted(
                                        each.get("policy").asString(),
                                        each.get("rule").asString(),
                                        each.get("blocks")),
                        each.get("blockHitRatio").toString()));
        return ratios;
    }

    @Test
    void givenATraceAndAPolicyInAFolder_whenBenchmarked_thenTheRatiosAreThoseOfReplayToAllDigits() throws Exception {
        Path trace = writeTrace();
        compilePolicy("Policy", "", "");
        Map<String, String> expected = replayed("replay --json --rule both --blocks 100"
                + " --policy lru,importance,gdsf --policy-class io.kvcache.bench.example.Lru2 --trace " + trace);

        Output output = run("-p trace=my.jsonl -p policy=lru,importance,gdsf -p policyClass=my.Policy -p blocks=100"
                + " -p rule=reference,full-blocks -f 1 -wi 0 -i 2 -rf json -rff results.json");

        assertThat(output.exit()).as(output::err).isZero();
        assertThat(expected).hasSize(8);
        assertThat(tableOf(output.out())).isEqualTo(expected);
        assertThat(metricsOf(folder.resolve("results.json"))).isEqualTo(expected);
        assertThat(Set.copyOf(expected.values()))
                .as("policies and rules differ")
                .hasSizeGreaterThan(4);
    }

    private static String named(String policy) {
        return policy.equals("my.Policy") ? "Lru2" : policy;
    }

    private static Map<String, String> tableOf(String out) {
        Map<String, String> ratios = new TreeMap<>();
        out.substring(out.lastIndexOf("hit ratio ")).lines().skip(1).forEach(line -> {
            String[] columns = line.split(" +", -1);
            assertThat(Double.parseDouble(columns[1])).as(line).isPositive();
            assertThat(columns[5]).isEqualTo("my.jsonl");
            ratios.put("%s %s %s".formatted(named(columns[3]), columns[4], columns[2]), columns[0]);
        });
        return ratios;
    }

    private static Map<String, String> metricsOf(Path results) {
        Map<String, String> ratios = new TreeMap<>();
        for (JsonNode result : JSON.readTree(results.toFile())) {
            JsonNode parameters = result.get("params");
            JsonNode metrics = result.get("secondaryMetrics");
            assertThat(metrics.get("nanosPerBlock").get("score").asDouble()).isPositive();
            ratios.put(
                    "%s %s %s"
                            .formatted(
                                    named(parameters.get("policy").asString()),
                                    parameters.get("rule").asString(),
                                    parameters.get("blocks").asString()),
                    metrics.get("hitRatio").get("score").toString());
        }
        return ratios;
    }

    @Test
    void givenAPolicyThatFails_whenBenchmarked_thenTheExitCodeSaysSo() throws Exception {
        compilePolicy("Broken", "int victim =", "if (true) throw new IllegalStateException(\"broken\"); int victim =");

        Output output = run("-p policyClass=my.Broken -p blocks=100 -wi 0 -i 1");

        assertThat(output.exit()).isEqualTo(1);
        assertThat(output.out()).contains("java.lang.IllegalStateException: broken", "at my.Broken.evict");
    }

    @Test
    void givenAPolicyThatIsNotThere_whenBenchmarked_thenItIsNamedAndNothingRuns() throws Exception {
        Output output = run("-p policyClass=my.None");

        assertThat(output.exit()).isEqualTo(2);
        assertThat(output.out()).isEmpty();
        assertThat(output.err()).contains("policyClass is 'my.None'", "nor in the folder " + folder.toRealPath());
    }

    @Test
    void givenTheList_whenAskedFor_thenItIsOfThisBenchmarkAlone() throws Exception {
        assertThat(run("-l").out()).contains("PrefixHitRateBenchmark.replay").doesNotContain("EvictionBenchmark");
    }

    @Test
    void givenTheJar_whenOpened_thenItHasThisBenchmarkAndAllLicences() throws IOException {
        try (JarFile jar = new JarFile(JAR.toFile())) {
            assertThat(jar.stream().map(JarEntry::getName))
                    .contains("LICENSE", "NOTICE", "META-INF/LICENSE", "META-INF/NOTICE", "META-INF/LICENSE-jmh.txt")
                    .filteredOn(name -> name.startsWith("io/kvcache/") && name.endsWith(".class"))
                    .allMatch(name -> name.matches("io/kvcache/(core/.*|planner/(baseline|replay|trace)/.*"
                            + "|bench/policy/(jmh_generated/)?(HitRate|PrefixHitRate).*)"));
            assertThat(jar.getManifest().getMainAttributes().getValue("Main-Class"))
                    .isEqualTo(HitRateMain.class.getName());
        }
    }
}
