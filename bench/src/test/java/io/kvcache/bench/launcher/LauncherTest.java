package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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
        "clean, takes no arguments",
        "jar, takes a FILE or nothing",
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
        List<String> command =
                new ArrayList<>(List.of(REPOSITORY.resolve("kvcache").toString()));
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
