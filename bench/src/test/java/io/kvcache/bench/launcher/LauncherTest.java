package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What `./kvcache` says and how it exits where things are not as they should be.
@Tag("slow")
class LauncherTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();

    @TempDir
    private static Path classes;

    @TempDir
    private Path folder;

    /// Once: as a source file, it is compiled whenever it is run.
    @BeforeAll
    static void compileTestSummary() {
        String source = REPOSITORY.resolve(".mvn/TestSummary.java").toString();
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, "-d", classes.toString(), source))
                .isZero();
    }

    @Test
    void givenNoJdk25_whenLaunched_thenSaysWhatToInstallAndFails() throws Exception {
        Path old = fakeJdk(17);
        ScriptResult scriptResult = run(REPOSITORY.resolve("kvcache").toString(), "doctor");
        assertThat(scriptResult.exit()).isEqualTo(1);
        assertThat(scriptResult.text())
                .contains("no JDK 25 found", old + " is JDK 17", "set JAVA_HOME")
                .doesNotContain("cores");
    }

    @Test
    void givenAFolderThatHoldsSomethingElse_whenAKitIsToGoThere_thenItIsLeftAlone() throws Exception {
        Path place = Files.createDirectory(folder.resolve("own"));
        Path own = Files.writeString(place.resolve("file"), "mine");
        ScriptResult scriptResult = launch("gpu-kit", place.toString());
        assertThat(scriptResult.exit()).isEqualTo(1);
        assertThat(scriptResult.text()).contains(place.toString(), "new, empty or an older kit");
        assertThat(own).hasContent("mine");
    }

    @ParameterizedTest
    @CsvSource({
        "build, takes no arguments",
        "install, takes no arguments",
        "format, takes no arguments",
        "clean, takes no arguments",
        "jar, 'takes a FILE or nothing, and --gpu'",
        "image, 'takes a FILE, --root DIR or nothing, and --gpu'",
        "hitrate-jar, takes a FILE or nothing",
        "gpu-kit, takes a folder or nothing",
        "release, takes a VERSION such as 1.2.3",
        "test, test knows --quick"
    })
    void givenAnOptionThatIsNone_whenACommandOfTheShellIsLaunched_thenItIsRefusedAndHelpIsShown(
            String command, String takes) throws Exception {
        ScriptResult refused = launch(command, "--x");
        assertThat(refused.exit()).isEqualTo(2);
        assertThat(refused.text()).contains(takes, "not '--x'");
        ScriptResult help = launch(command, "--help");
        assertThat(help.exit()).isEqualTo(0);
        assertThat(help.text()).contains("Usage: ./kvcache COMMAND", command);
    }

    @ParameterizedTest
    @CsvSource({
        "jar --gpu a b, jar takes, a b",
        "image --gpu --root, image takes, --root",
        "image --root a --gpu b, image takes, --root a b",
        "hitrate-jar --gpu, hitrate-jar takes, --gpu"
    })
    void givenMoreThanItTakes_whenAJarOrAnImageForGpusIsAskedFor_thenItIsRefused(
            String line, String takes, String wrong) throws Exception {
        ScriptResult refused = launch(line.split(" ", -1));
        assertThat(refused.exit()).isEqualTo(2);
        assertThat(refused.text().replaceAll("\\s+", " ")).contains(takes, "not '" + wrong + "'");
    }

    @Test
    void givenANameThatIsNoTest_whenTested_thenTheModulesAreNamed() throws Exception {
        ScriptResult refused = launch("test", "NoSuchTest");
        assertThat(refused.exit()).isEqualTo(2);
        assertThat(refused.text()).contains("'NoSuchTest'", "kvcache-core");
    }

    @Test
    void givenTheSimulationOfAClusterAndHelp_whenLaunched_thenItsOwnOptionsAreShown() throws Exception {
        ScriptResult help = launch("sim", "--cluster", "--help");
        assertThat(help.exit()).isZero();
        assertThat(help.text()).startsWith("Usage: ./kvcache sim --cluster ").contains("--seeds N", "--first S");
    }

    @Test
    void givenNoJdk25_whenAskedForHelp_thenListsTheCommandsOfTheShell() throws Exception {
        ScriptResult scriptResult = run(REPOSITORY.resolve("kvcache").toString(), "help");
        assertThat(scriptResult.exit()).isZero();
        assertThat(scriptResult.text()).contains("test [--quick] [--json] [MODULE...]");
    }

    @Test
    void givenReports_whenSummedUp_thenReasonsAreGivenAndTheLastLineHasTheCounts() throws Exception {
        report("""
                <testcase classname="a.B" name="passes"/>
                <testcase classname="a.B" name="fails"><failure message="boom &lt;1&gt;">trace</failure></testcase>
                <testcase classname="a.B" name="skips"><skipped><![CDATA[\
                org.opentest4j.TestAbortedException: Assumption failed: no CUDA device
                \tat a.B.skips(B.java:1)]]></skipped></testcase>
                <testcase classname="a.B" name="misses"><skipped><![CDATA[\
                org.opentest4j.TestAbortedException:\s
                assumption was not met due to: [there is no ptxas]\s
                Expecting value to be true but was false
                \tat a.B.misses(B.java:2)]]></skipped></testcase>
                <testcase classname="a.B" name="disabled"><skipped message="not now"/></testcase>""");
        ScriptResult scriptResult = summarise("failed");
        assertThat(scriptResult.exit()).isEqualTo(1);
        assertThat(scriptResult.text())
                .contains(
                        "FAILED a.B.fails\n    boom <1>\n",
                        "SKIPPED 1: no CUDA device\n",
                        "SKIPPED 1: there is no ptxas\n",
                        "SKIPPED 1: not now\n")
                .endsWith("\n1 passed, 1 failed, 3 skipped\n");
    }

    @Test
    void givenAllPassed_whenSummedUp_thenSucceeds() throws Exception {
        report("<testcase classname='a.B' name='passes'/>");
        ScriptResult scriptResult = summarise("ok");
        assertThat(scriptResult.exit()).isZero();
        assertThat(scriptResult.text()).endsWith("\n1 passed, 0 failed, 0 skipped\n");
    }

    @Test
    void givenBrokenBuildWithoutFailedTest_whenSummedUp_thenTheBuildIsWhatFailed() throws Exception {
        report("<testcase classname='a.B' name='passes'/>");
        ScriptResult scriptResult = summarise("failed");
        assertThat(scriptResult.exit()).isEqualTo(1);
        assertThat(scriptResult.text()).endsWith("\n1 passed, 1 failed, 0 skipped\n");
    }

    @Test
    void givenNoReports_whenSummedUp_thenFails() throws Exception {
        ScriptResult scriptResult = summarise("ok");
        assertThat(scriptResult.exit()).isEqualTo(1);
        assertThat(scriptResult.text()).endsWith("No test ran.\n0 passed, 0 failed, 0 skipped\n");
    }

    @Test
    void givenJson_whenSummedUp_thenStandardOutputIsOneObject() throws Exception {
        report("<testcase classname='a.B' name='says &quot;x&quot;'><skipped message='not now'/></testcase>");
        ScriptResult scriptResult = summarise("ok", "--json");
        assertThat(scriptResult.text())
                .isEqualTo("{\"build\":\"ok\",\"passed\":0,\"failed\":0,\"skipped\":1,\"failures\":[],"
                        + "\"skips\":[{\"reason\":\"not now\",\"tests\":[\"a.B.says \\\"x\\\"\"]}]}\n");
    }

    /// A project of two modules, of which the upper one needs the lower one and has a test that passes.
    ///
    /// @param lower what the lower one's test checks
    private Path projectOfTwo(String lower) throws IOException {
        Path project = Files.createDirectories(folder.resolve("project"));
        try (Stream<Path> files = Files.walk(REPOSITORY.resolve(".mvn"))) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Path copy = project.resolve(REPOSITORY.relativize(file).toString());
                Files.createDirectories(copy.getParent());
                Files.copy(file, copy);
            }
        }
        for (String script : List.of("kvcache", "mvnw")) {
            Files.copy(REPOSITORY.resolve(script), project.resolve(script), StandardCopyOption.COPY_ATTRIBUTES);
        }
        String parent = Files.readString(REPOSITORY.resolve("pom.xml"));
        Files.writeString(project.resolve("pom.xml"), """
                <project><modelVersion>4.0.0</modelVersion>
                <groupId>two</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging>
                <modules><module>lower</module><module>upper</module></modules>
                <properties><maven.compiler.release>25</maven.compiler.release>
                <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
                <dependencies><dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId>
                <version>%s</version><scope>test</scope></dependency></dependencies>
                <build><plugins>%s%s</plugins></build></project>
                """.formatted(
                        text(parent, "<junit.version>(.*?)</junit.version>"),
                        plugin("maven-surefire-plugin", parent),
                        plugin("maven-compiler-plugin", parent)));
        module(project, "lower", "", lower);
        module(
                project,
                "upper",
                "<dependencies><dependency><groupId>two</groupId><artifactId>lower</artifactId><version>1</version></dependency></dependencies>",
                "true");
        return project;
    }

    private static String plugin(String name, String pom) {
        String version = text(pom, "<artifactId>" + name + "</artifactId>\\s*<version>(.*?)</version>");
        return "<plugin><artifactId>%s</artifactId><version>%s</version></plugin>".formatted(name, version);
    }

    private static String text(String in, String pattern) {
        Matcher found = Pattern.compile(pattern).matcher(in);
        assertThat(found.find()).as(pattern).isTrue();
        return found.group(1);
    }

    private static void module(Path project, String name, String dependencies, String check) throws IOException {
        Path tests = Files.createDirectories(project.resolve(name).resolve("src/test/java"));
        Files.writeString(project.resolve(name).resolve("pom.xml"), """
                <project><modelVersion>4.0.0</modelVersion>
                <parent><groupId>two</groupId><artifactId>parent</artifactId><version>1</version></parent>
                <artifactId>%s</artifactId>%s</project>
                """.formatted(name, dependencies));
        String type = name + "Test";
        Files.writeString(tests.resolve(type + ".java"), """
                class %s {
                    @org.junit.jupiter.api.Test
                    void check() {
                        org.junit.jupiter.api.Assertions.assertTrue(%s);
                    }
                }
                """.formatted(type, check));
    }

    @Test
    void givenAFailedTest_whenOthersNeedItsModule_thenTheirsAreRunAllTheSame() throws Exception {
        Path project = projectOfTwo("false");
        ScriptResult result = launch(project.resolve("kvcache"), "test");
        assertThat(result.exit()).isEqualTo(1);
        assertThat(result.text())
                .contains("lower lowerTest: 1 tests, 1 failed", "upper upperTest: 1 tests, 0 failed")
                .contains("FAILED lowerTest.check")
                .endsWith("1 passed, 1 failed, 0 skipped\n");
    }

    @Test
    void givenAModuleThatDoesNotCompile_whenTested_thenTheOneAboveIsLeftOutAndTheErrorShown() throws Exception {
        Path project = projectOfTwo("unknown");
        ScriptResult result = launch(project.resolve("kvcache"), "test");
        assertThat(result.exit()).isEqualTo(1);
        assertThat(result.text())
                .contains("lowerTest.java:[4,", "cannot find symbol")
                .contains("FAILED the build")
                .endsWith("0 passed, 1 failed, 0 skipped\n");
    }

    private void report(String cases) throws IOException {
        Path reports = Files.createDirectories(folder.resolve("module/target/surefire-reports"));
        Files.writeString(reports.resolve("TEST-a.B.xml"), "<testsuite>" + cases + "</testsuite>");
    }

    private ScriptResult summarise(String... outcome) throws Exception {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of("-cp", classes.toString(), "TestSummary", folder.toString()));
        command.addAll(List.of(outcome));
        return run(command.toArray(String[]::new));
    }

    /// A folder that looks like an installation of that version.
    private Path fakeJdk(int major) throws IOException {
        Path home = folder.resolve("jdk");
        Files.createDirectories(home.resolve("bin"));
        Path javac = Files.writeString(home.resolve("bin/javac"), "");
        assertThat(javac.toFile().setExecutable(true)).isTrue();
        Files.writeString(home.resolve("release"), "JAVA_VERSION=\"%d.0.1\"\n".formatted(major));
        return home;
    }

    /// Runs the launcher with the tests' own JDK.
    private ScriptResult launch(String... arguments) throws Exception {
        return launch(REPOSITORY.resolve("kvcache"), arguments);
    }

    private static ScriptResult launch(Path launcher, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(launcher.toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        Process process = builder.start();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        return new ScriptResult(process.waitFor(), text);
    }

    /// Runs with nothing in the environment but a folder of JDKs to search; the tests' own JDK stays out of sight.
    private ScriptResult run(String... command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
        if (!command[0].endsWith("java")) {
            builder.redirectErrorStream(true);
        }
        builder.environment().clear();
        builder.environment().put("PATH", toolsWithoutJava().toString());
        builder.environment().put("KVCACHE_JDK_SEARCH", folder.resolve("jdk").toString());
        Process process = builder.redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
                .start();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        return new ScriptResult(process.waitFor(), text);
    }

    private Path toolsWithoutJava() throws IOException {
        Path tools = Files.createDirectories(folder.resolve("tools"));
        for (String tool : List.of("bash", "cat", "dirname", "readlink", "sed")) {
            Path found = Path.of("/usr/bin", tool);
            Path link = tools.resolve(tool);
            if (!Files.exists(link)) {
                Files.createSymbolicLink(link, Files.exists(found) ? found : Path.of("/bin", tool));
            }
        }
        return tools;
    }

    private record ScriptResult(int exit, String text) {}
}
