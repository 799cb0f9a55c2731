package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

final class KvcacheTest {

    @Test
    void givenHelp_whenRun_thenCommandsAreListedUnderTheirHeadings() {
        CommandRunner.CommandResult help = CommandRunner.run("help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out())
                .containsSubsequence(
                        "Run:",
                        "demo",
                        "Use:",
                        "help",
                        "Plan:",
                        "replay",
                        "Check:",
                        "doctor",
                        "test",
                        "Develop:",
                        "build",
                        "install");
        assertThat(help.out()).doesNotContain("Commands:");
    }

    @Test
    void givenNoCommandOrAnUnknownOne_whenRun_thenBadUsage() {
        assertThat(CommandRunner.run().exitCode()).isEqualTo(2);
        CommandRunner.CommandResult unknown = CommandRunner.run("replya");
        assertThat(unknown.exitCode()).isEqualTo(2);
        assertThat(unknown.out()).isEmpty();
        assertThat(unknown.err()).contains("replya", "Did you mean: kvcache replay?");
        assertThat(CommandRunner.run("tset").err()).contains("Did you mean: kvcache test?");
    }

    @Test
    void givenAnOptionThatLabHas_whenReplayed_thenTheErrorPointsThere() {
        CommandRunner.CommandResult shares = CommandRunner.run("replay", "--trace", "generated", "--share", "3");
        assertThat(shares.exitCode()).isEqualTo(2);
        assertThat(shares.err()).contains("there is no option --share", "Did you mean: kvcache lab --share?");
        assertThat(CommandRunner.run("replay", "--look-ahead=64").err())
                .contains("Did you mean: kvcache lab --look-ahead?");
    }

    @Test
    void givenVersion_whenRun_thenOneLine() {
        CommandRunner.CommandResult version = CommandRunner.run("--version");
        assertThat(version.exitCode()).isZero();
        assertThat(version.out().strip()).startsWith("kvcache ").doesNotContain("\n");
    }

    @Test
    void givenEveryCommand_whenAskedForHelp_thenItExplainsItself() {
        for (String name : Kvcache.commandLine().getSubcommands().keySet()) {
            CommandRunner.CommandResult help = CommandRunner.run("help", name);
            assertThat(help.exitCode()).as(name).isZero();
            assertThat(help.out()).contains(name);
        }
        for (String name : List.of("crash", "sim")) {
            CommandRunner.CommandResult help = CommandRunner.runTrial("help", name);
            assertThat(help.exitCode()).as(name).isZero();
            assertThat(help.out()).contains(name);
            String described = Trials.commandLine()
                    .getSubcommands()
                    .get(name)
                    .getCommandSpec()
                    .usageMessage()
                    .description()[0];
            assertThat(CommandRunner.run("help").out()).contains(described);
        }
    }
}
