package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
                        "gpu",
                        "cluster",
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

    @ParameterizedTest
    @CsvSource({
        "serve --prot 1, --port",
        "top --prot 1, --port",
        "config check --prot 1, --port",
        "serve --hots-bytes 1GiB, --host-bytes",
        "srve, kvcache serve",
        "help srve, kvcache serve",
        "help config chekc, kvcache config check",
        "serve --policy lru, --set memory.policy=lru",
        "config check --policy=lru, --set memory.policy=lru",
        "config chekc, kvcache config check"
    })
    void givenAMisspeltOptionOrCommand_whenRun_thenTheOneThatWasMeantIsSuggested(String typed, String meant) {
        CliRunner.CliResult mistake = CliRunner.run(typed.split(" ", -1));
        assertThat(mistake.exitCode()).isEqualTo(2);
        assertThat(mistake.out()).isEmpty();
        assertThat(mistake.err()).contains("Did you mean: " + meant + "?");
    }

    @ParameterizedTest
    @CsvSource({"stats, stats", "stats --help, stats", "config chekc --help, chekc"})
    void givenAnUnknownCommand_whenRunOrAskedForHelp_thenBadUsage(String typed, String unknown) {
        CliRunner.CliResult mistake = CliRunner.run(typed.split(" ", -1));
        assertThat(mistake.exitCode()).isEqualTo(2);
        assertThat(mistake.out()).isEmpty();
        assertThat(mistake.err()).startsWith("Unknown command '" + unknown + "'.");
    }

    @Test
    void givenASubcommand_whenAskedForHelp_thenItsOwnIsShown() {
        CliRunner.CliResult help = CliRunner.run("help", "config", "check");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out()).startsWith("Usage: kvcache config check").contains("--no-files");
        assertThat(help).isEqualTo(CliRunner.run("config", "check", "--help"));
    }

    @Test
    void givenAnUnknownCommandAtAnyDepth_whenAskedForHelp_thenBadUsage() {
        CliRunner.CliResult first = CliRunner.run("help", "foo");
        assertThat(first.exitCode()).isEqualTo(2);
        assertThat(first.err()).startsWith("Unknown command 'foo'.").contains("See: kvcache --help");
        CliRunner.CliResult second = CliRunner.run("help", "config", "foo");
        assertThat(second.exitCode()).isEqualTo(2);
        assertThat(second.out()).isEmpty();
        assertThat(second.err()).startsWith("Unknown command 'foo'.").contains("See: kvcache config --help");
        assertThat(CliRunner.run("help", "serve", "foo").err()).startsWith("kvcache serve has no subcommands");
    }

    @Test
    void givenASettingWithoutAValue_whenRun_thenTheFormIsSaidOnce() {
        CliRunner.CliResult mistake = CliRunner.run("serve", "--set", "foo");
        assertThat(mistake.exitCode()).isEqualTo(2);
        assertThat(mistake.err()).startsWith("Value for option '--set' (SETTING=VALUE)");
    }
}
