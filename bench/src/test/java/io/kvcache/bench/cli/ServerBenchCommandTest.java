package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.json.JsonMapper;

@Tag("slow")
class ServerBenchCommandTest {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    @ParameterizedTest
    @CsvSource({
        "--part,nothing,'values, responder, pipeline, newcomer, eviction, allocation, start'",
        "--soak,10,as in 10m",
        "--soak,0m,as in 10m"
    })
    void givenAnOptionThatIsWrong_whenRun_thenItSaysWhatItTakes(String option, String value, String allowed) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "server", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(value).contains(allowed);
    }

    @Test
    @Tag("nightly")
    void givenPartsOfOurServerAlone_whenRunQuickly_thenEachQuestionHasAnAnswer() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "server", "--quick", "--json", "--part", "start,allocation");

        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        Map<String, Double> answers = commandResult
                .out()
                .lines()
                .map(JSON::readTree)
                .collect(Collectors.toMap(
                        line -> line.path("name").asString(),
                        line -> line.path("value").doubleValue()));
        assertThat(answers.keySet())
                .containsExactlyInAnyOrder("start-get", "alloc-4k", "alloc-64k", "alloc-1m", "alloc-4m", "alloc-32m");
        assertThat(answers.get("start-get")).isPositive();
        assertThat(answers.get("alloc-32m"))
                .as("bytes of heap for a GET of 32 MiB, were it to pass there")
                .isLessThan(1 << 20);
    }
}
