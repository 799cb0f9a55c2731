package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class KvcacheTest {

    @Test
    void givenTheServersCommandLine_whenItsCommandsAreListed_thenTheyAreTheServersAlone() {
        assertThat(Kvcache.commandLine().getSubcommands().keySet())
                .containsExactlyInAnyOrder(
                        "serve",
                        "config",
                        "ping",
                        "put",
                        "get",
                        "del",
                        "stat",
                        "top",
                        "events",
                        "disk",
                        "doctor",
                        "fsck",
                        "inspect",
                        "version",
                        "help",
                        "rehearse");
    }

    @Test
    void givenHelp_whenRun_thenCommandsAreListedUnderTheirHeadingsAndHiddenOnesAreNot() {
        CliRunner.CliResult help = CliRunner.run("help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out())
                .containsSubsequence("Run:", "serve", "Use:", "ping", "help", "Check:", "doctor")
                .doesNotContain("Commands:", "Plan:", "Develop:", "rehearse");
    }

    @Test
    void givenVersion_whenAskedByOptionOrCommand_thenTheSameLine() {
        CliRunner.CliResult option = CliRunner.run("--version");
        assertThat(option.exitCode()).isZero();
        assertThat(option.out().strip()).startsWith("kvcache ").doesNotContain("\n");
        assertThat(CliRunner.run("version")).isEqualTo(option);
    }

    @Test
    void givenEveryCommand_whenAskedForHelp_thenItExplainsItself() {
        for (String name : Kvcache.commandLine().getSubcommands().keySet()) {
            CliRunner.CliResult help = CliRunner.run("help", name);
            assertThat(help.exitCode()).as(name).isZero();
            assertThat(help.out()).contains(name);
        }
    }
}
