package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ServerBenchCommandTest {

    @ParameterizedTest
    @CsvSource({
        "--part,nothing,'values, responder, pipeline, tool, eviction, allocation, start'",
        "--soak,10,as in 10m",
        "--soak,0m,as in 10m"
    })
    void givenAnOptionThatIsWrong_whenRun_thenItSaysWhatItTakes(String option, String value, String allowed) {
        Shell.Run run = Shell.run("bench", "server", option, value);
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains(value).contains(allowed);
    }
}
