package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BuildComparisonCommandTest {

    @ParameterizedTest
    @CsvSource({
        "--suite,disks,'core, server, transport, disk'",
        "--pairs,0,1 to 1000",
        "--cells,nothing-like-it,get-64k-1c",
        "--cells,(,a regular expression",
        "--time,0ms,as in 10m"
    })
    void givenAnOptionThatIsWrong_whenRun_thenItSaysWhatItTakes(String option, String value, String allowed) {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "pairs", "--old", "somewhere", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(value).contains(allowed);
    }

    @Test
    void givenAPlaceWithoutABuild_whenRun_thenItFailsAndNamesThePlace(@TempDir Path folder) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "pairs", "--old", folder.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains(folder.toString()).contains("./kvcache build");
    }

    @Test
    @Tag("nightly")
    void givenTheSameBuildTwice_whenCompared_thenEachCellHasARatio(@TempDir Path folder) throws Exception {
        Path jar = folder.resolve("same.jar");
        ClassPathJar.write(jar);
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "bench",
                "pairs",
                "--old",
                jar.toString(),
                "--new",
                jar.toString(),
                "--pairs",
                "1",
                "--json",
                "--time",
                "20ms",
                "--cells",
                "^(match-miss|pipe-get|set-1m-1c)$");

        assertThat(commandResult.out().lines().map(line -> line.replaceAll(".*\"cell\":\"([^\"]*)\".*", "$1")))
                .as(commandResult.err())
                .contains("match-miss", "pipe-get", "set-1m-1c")
                .anyMatch(line -> line.contains("geometricMean"));
        assertThat(Files.exists(jar)).isTrue();
    }

    /// A jar that holds nothing but the class path of this JVM.
    private static final class ClassPathJar {

        static void write(Path jar) throws Exception {
            Manifest manifest = new Manifest();
            manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
            StringBuilder places = new StringBuilder();
            for (String place : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
                places.append(Path.of(place).toUri()).append(' ');
            }
            manifest.getMainAttributes()
                    .put(Attributes.Name.CLASS_PATH, places.toString().strip());
            try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), manifest)) {
                out.flush();
            }
        }
    }
}
