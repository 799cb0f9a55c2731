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
        Shell.Run help = Shell.run("help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out())
                .containsSubsequence("Run:", "serve", "Use:", "ping", "help", "Check:", "doctor")
                .doesNotContain("Commands:", "Plan:", "Develop:", "rehearse");
    }

    @Test
    void givenVersion_whenAskedByOptionOrCommand_thenTheSameLine() {
        Shell.Run option = Shell.run("--version");
        assertThat(option.exitCode()).isZero();
        assertThat(option.out().strip()).startsWith("kvcache ").doesNotContain("\n");
        assertThat(Shell.run("version")).isEqualTo(option);
    }

    @Test
    void givenEveryCommand_whenAskedForHelp_thenItExplainsItself() {
        for (String name : Kvcache.commandLine().getSubcommands().keySet()) {
            Shell.Run help = Shell.run("help", name);
            assertThat(help.exitCode()).as(name).isZero();
            assertThat(help.out()).contains(name);
        }
    }
}
