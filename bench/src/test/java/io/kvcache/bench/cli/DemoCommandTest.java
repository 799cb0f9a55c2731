package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The options that `kvcache demo` refuses together.
final class DemoCommandTest {

    @ParameterizedTest
    @ValueSource(strings = {"--blocks=100", "--bytes=4KiB", "--gpu"})
    void givenTheDemoOfAClusterAndAnOptionOfAnother_whenRun_thenTheOptionIsNamed(String option) {
        CommandRunner.CommandResult result = CommandRunner.run("demo", "--cluster", option);

        assertThat(result.exitCode()).as(result.err()).isEqualTo(2);
        assertThat(result.err())
                .contains("--cluster takes --trace and --json alone, not " + option.replaceFirst("=.*", ""));
    }
}
