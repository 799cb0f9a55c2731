package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ClusterBenchCommandTest {

    @ParameterizedTest
    @CsvSource({
        "--scenario,earthquake,'kill, restart, rolling, drain, join, stop, all'",
        "--nodes,1,2 to 16",
        "--clients,0,1 to 64",
        "--rate,-1,0 or more",
        "--bytes,2MiB,1 to 1048576",
        "--trace,nothing,no such file: nothing; a trace is"
    })
    void givenAnOptionThatIsWrong_whenRun_thenItSaysWhatItTakes(String option, String value, String allowed) {
        CommandRunner.CommandResult result = CommandRunner.run("bench", "cluster", option, value);

        assertThat(result.exitCode()).as(result.err()).isEqualTo(2);
        assertThat(result.err()).contains(option.substring(2)).contains(allowed);
    }
}
