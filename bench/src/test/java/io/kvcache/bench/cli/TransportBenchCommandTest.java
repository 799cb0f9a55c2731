package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Tag("nightly")
class TransportBenchCommandTest {

    @Test
    void givenOnePart_whenRunAsJson_thenItsAnswersAreLinesWithAllFieldsAndNothingElse() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "transport", "--quick", "--json", "--part", "HEAP");

        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        List<JsonNode> lines = commandResult
                .out()
                .lines()
                .map(JsonMapper.builder().build()::readTree)
                .toList();
        assertThat(lines).isNotEmpty();
        assertThat(lines)
                .allSatisfy(line -> assertThat(line.propertyNames())
                        .contains("name", "value", "unit", "against", "againstValue", "ratio", "budget", "ok", "runs"));
    }

    @Test
    void givenEveryBenchCommandThatAnswersQuestions_whenAskedForHelp_thenItTakesJson() {
        for (String command : List.of("core", "server", "transport", "gpu", "pairs")) {
            CommandRunner.CommandResult help = command.equals("core")
                    ? CommandRunner.run("bench", "--help")
                    : CommandRunner.run("bench", command, "--help");
            assertThat(help.out()).as(command).contains("--json");
        }
    }
}
