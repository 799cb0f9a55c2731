package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.cli.CommandRunner.CommandResult;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class StateLabCommandTest {

    @Test
    void givenAHybridModel_whenPoliciesAreCompared_thenARowForEachAndNoneAboveTheBound() {
        CommandResult result = states("--model", "qwen3-next-80b-a3b", "--policy", "lru", "--capacity", "8GiB,64GiB");
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .contains("a block of 512 tokens takes 12 MiB, a state 73.7 MiB (as much as 3,144 tokens)")
                .containsPattern("states +policy +capacity_bytes +token hits");
        double[] bound = hits(result.out(), "free");
        assertThat(bound[0]).isPositive().isLessThan(bound[1]);
        for (String policy : new String[] {"bound", "block", "ends", "ends+branches+every:8192"}) {
            assertThat(hits(result.out(), policy)[0]).isBetween(0.0, bound[0]);
            assertThat(hits(result.out(), policy)[1]).isBetween(0.0, bound[1]);
        }
    }

    @Test
    void givenStatesOfAnyModel_whenAskedForCsv_thenTheirRows() {
        CommandResult result = states(
                "--bytes-per-token",
                "24576",
                "--state-bytes",
                "74MiB",
                "--states",
                "ends",
                "--policy",
                "lru",
                "--format",
                "csv",
                "--capacity",
                "64GiB");
        assertThat(result.out().lines().toList())
                .hasSize(2)
                .first()
                .isEqualTo(
                        "trace,states,policy,capacity_bytes,token_hit_ratio,kv_token_hit_ratio,states_put,model,block_tokens,"
                                + "state_bytes,seed,statistic,kvcache_version,trace_sha256");
        assertThat(result.out().lines().toList().get(1)).startsWith("generated:5,ends,lru,68719476736,0.");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "--model|gpt-oss-20b|--model is 'gpt-oss-20b', must be: one with recurrent states (qwen3-next-80b-a3b,",
                "--states|never|--states is 'never', must be: bound, block, free, or ends, branches and every:TOKENS",
                "--states|every:100|--states is 'every:100', must be: multiples of the 512 tokens of a block",
                "--capacity|1MiB|--capacity is '1 MiB', must be: at least 85.7 MiB, for a block and a state",
                "--state-bytes|much|'much' is not a size",
            })
    void givenAWrongValue_whenRun_thenTheErrorNamesItAndWhatIsAllowed(String option, String value, String error) {
        String[] model = option.equals("--model") ? new String[0] : new String[] {"--model", "qwen3-next-80b-a3b"};
        CommandResult result =
                states(Stream.concat(Stream.of(model), Stream.of(option, value)).toArray(String[]::new));
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err()).contains(error);
    }

    private static double[] hits(String table, String policy) {
        return table.lines()
                .filter(line -> line.startsWith(policy + " "))
                .map(line -> line.replace(" %", "").replaceAll(".* ", ""))
                .mapToDouble(Double::parseDouble)
                .toArray();
    }

    private static CommandResult states(String... options) {
        return CommandRunner.run(Stream.concat(Stream.of("lab", "states", "--trace", "generated:5"), Stream.of(options))
                .toArray(String[]::new));
    }
}
