package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class KvcacheTest {

    @Test
    void givenHelp_whenRun_thenTheCommandsOfAllModulesAreListed() {
        Shell.Run help = Shell.run("help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out())
                .containsSubsequence(
                        "Run:", "serve", "demo", "chat-server", "engines", "Use:", "get", "Plan:", "replay");
    }

    @Test
    void givenACommandOfTheEngines_whenAskedForHelp_thenItExplainsItself() {
        assertThat(Shell.run("help", "chat-server").out()).contains("--verify");
        assertThat(Shell.run("engines", "demo", "--help").out()).contains("--library");
        assertThat(Shell.run("engines", "bench", "--help").out()).contains("--record");
        Shell.Run none = Shell.run("engines");
        assertThat(none.exitCode()).isEqualTo(2);
        assertThat(none.err()).contains("demo or bench");
    }
}
