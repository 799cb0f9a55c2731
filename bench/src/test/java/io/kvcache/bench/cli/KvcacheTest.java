package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class KvcacheTest {

    @Test
    void givenHelp_whenRun_thenCommandsAreListedUnderTheirHeadings() {
        Shell.Run help = Shell.run("help");
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
                        "build");
        assertThat(help.out()).doesNotContain("Commands:");
    }

    @Test
    void givenNoCommandOrAnUnknownOne_whenRun_thenBadUsage() {
        assertThat(Shell.run().exitCode()).isEqualTo(2);
        Shell.Run unknown = Shell.run("replya");
        assertThat(unknown.exitCode()).isEqualTo(2);
        assertThat(unknown.out()).isEmpty();
        assertThat(unknown.err()).contains("replya");
    }

    @Test
    void givenVersion_whenRun_thenOneLine() {
        Shell.Run version = Shell.run("--version");
        assertThat(version.exitCode()).isZero();
        assertThat(version.out().strip()).startsWith("kvcache ").doesNotContain("\n");
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
