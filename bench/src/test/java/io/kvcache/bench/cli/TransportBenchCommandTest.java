package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class TransportBenchCommandTest {

    @Test
    void givenOnePart_whenRunAsJson_thenItsAnswersAreLinesWithAllFieldsAndNothingElse() {
        Shell.Run run = Shell.run("bench", "transport", "--quick", "--json", "--part", "HEAP");

        assertThat(run.exitCode()).as(run.err()).isZero();
        List<JsonNode> lines =
                run.out().lines().map(JsonMapper.builder().build()::readTree).toList();
        assertThat(lines).isNotEmpty();
        assertThat(lines)
                .allSatisfy(line -> assertThat(line.propertyNames())
                        .contains("name", "value", "unit", "against", "againstValue", "ratio", "budget", "ok", "runs"));
    }

    @Test
    void givenEveryBenchCommandThatAnswersQuestions_whenAskedForHelp_thenItTakesJson() {
        for (String command : List.of("core", "server", "transport", "gpu", "pairs")) {
            Shell.Run help =
                    command.equals("core") ? Shell.run("bench", "--help") : Shell.run("bench", command, "--help");
            assertThat(help.out()).as(command).contains("--json");
        }
    }
}
