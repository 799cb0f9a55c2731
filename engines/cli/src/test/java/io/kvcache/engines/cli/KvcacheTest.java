package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class KvcacheTest {

    @Test
    void givenHelp_whenRun_thenTheCommandsOfAllModulesAreListed() {
        CommandRunner.Run help = CommandRunner.run("help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out())
                .containsSubsequence(
                        "Run:", "serve", "demo", "chat-server", "engines", "Use:", "get", "Plan:", "replay");
    }

    @Test
    void givenACommandOfTheEngines_whenAskedForHelp_thenItExplainsItself() {
        assertThat(CommandRunner.run("help", "chat-server").out()).contains("--verify");
        assertThat(CommandRunner.run("engines", "demo", "--help").out()).contains("--library");
        assertThat(CommandRunner.run("engines", "bench", "--help").out()).contains("--record");
        CommandRunner.Run none = CommandRunner.run("engines");
        assertThat(none.exitCode()).isEqualTo(2);
        assertThat(none.err()).contains("demo or bench");
    }
}
