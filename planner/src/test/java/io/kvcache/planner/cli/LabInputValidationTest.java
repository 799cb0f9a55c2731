package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Measurements of nothing, and folders that are somebody else's.
final class LabInputValidationTest {

    @Test
    void givenASampleOfNothing_whenDrawn_thenRefused() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "curve", "--trace", "generated:5", "--sample", "0.00001");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.out()).isEmpty();
        assertThat(commandResult.err())
                .contains("--sample is '0.00001', must be: more: it looks at none of the blocks");
    }

    @Test
    void givenAWarmupOfAllRequests_whenComparedOrDrawn_thenRefused() {
        for (String[] words : List.of(new String[] {"lab"}, new String[] {"lab", "curve"})) {
            List<String> asked = new ArrayList<>(List.of(words));
            asked.addAll(List.of("--trace", "generated:5", "--warmup", "10000"));
            CommandRunner.CommandResult commandResult = CommandRunner.run(asked.toArray(String[]::new));
            assertThat(commandResult.exitCode()).isEqualTo(2);
            assertThat(commandResult.out()).doesNotContain("%  ");
            assertThat(commandResult.err())
                    .contains("--warmup is '10000', must be: below the 10000 requests of generated:5");
        }
    }

    @Test
    void givenAFolderThatIsNotEmpty_whenTiersAreCompared_thenRefusedBeforeAnythingIsTold(@TempDir Path folder)
            throws IOException {
        Files.writeString(folder.resolve("mine"), "mine");
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "lab",
                "tiers",
                "--trace",
                "generated:5",
                "--first",
                "50",
                "--policy",
                "belady,lru",
                "--folder",
                folder.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.out()).isEmpty();
        assertThat(commandResult.err()).contains(folder.toString());
        assertThat(folder.resolve("mine")).exists();
    }
}
