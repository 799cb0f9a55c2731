package io.kvcache.bench.policy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.example.Lru2;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What is refused before a JVM is started; [HitRateJarIT] starts some.
final class HitRateMainTest {

    @TempDir
    private Path folder = Path.of("");

    private record Answer(int exit, String out, String err) {}

    private static Answer run(String... arguments) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        int exit = HitRateMain.run(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8), arguments);
        return new Answer(exit, out.toString(UTF_8), err.toString(UTF_8));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "policy=lrx | policy is 'lrx', must be: lru, | belady-bypass, or a class",
                "policy=lru,my.None | policy is 'my.None': | is not on the class path",
                "policyClass=my.None | policyClass is 'my.None': | nor in the folder /",
                "policyClass=java.lang.String | policyClass is 'java.lang.String': | implements neither",
                "trace=none.jsonl | trace is 'none.jsonl': no such file | a trace is a file, conversation,",
                "trace=/none/a.jsonl | trace is '/none/a.jsonl': no such file | a trace is a file, conversation,",
                "trace=generated:x | trace is 'generated:x': | must be a file, conversation,",
                "trace=src | trace is 'src': | is a directory",
                "blocks=0 | blocks is '0', must be: 1 to 2147483647 | above 0% to 100%",
                "blocks=100,-1 | blocks is '-1', must be: | above 0% to 100%",
                "blocks=2147483648 | blocks is '2147483648', must be: | above 0% to 100%",
                "blocks=0% | blocks is '0%', must be: | above 0% to 100%",
                "blocks=101% | blocks is '101%', must be: | above 0% to 100%",
                "blocks=NaN% | blocks is 'NaN%', must be: | above 0% to 100%",
                "rule=both | rule is 'both', must be: | reference, full-blocks",
                "polcy=lru | -p is 'polcy=lru', must be NAME=VALUE of: | trace, policy, policyClass, blocks, rule",
            })
    void givenAParameterThatIsWrong_whenRun_thenOneLineNamesItAndWhatIsAllowed(
            String parameter, String names, String allows) {
        Answer answer = run("-p", parameter);

        assertThat(answer.exit()).isEqualTo(2);
        assertThat(answer.err()).startsWith("kvcache-hitrate: " + names).contains(allows);
        assertThat(answer.err().strip()).doesNotContain("\n");
        assertThat(answer.out()).isEmpty();
    }

    @Test
    void givenALineThatIsNoRequest_whenRun_thenFileLineAndReasonAreNamed() throws IOException {
        Path trace = Files.writeString(folder.resolve("a.jsonl"), "{\"hash_ids\": 1}\n");

        Answer answer = run("-p", "trace=" + trace);

        assertThat(answer.exit()).isEqualTo(2);
        assertThat(answer.err()).startsWith("kvcache-hitrate: trace is '" + trace + "': " + trace + ":1: ");
    }

    @Test
    void givenAnOptionThatJmhDoesNotKnow_whenRun_thenItIsRefused() {
        assertThat(run("--quick")).isEqualTo(new Answer(2, "", "kvcache-hitrate: quick is not a recognized option\n"));
    }

    @Test
    void givenHelp_whenRun_thenTheParametersAreListed() {
        Answer help = run("--help");

        assertThat(help.exit()).isZero();
        assertThat(help.out())
                .contains("-p trace=", "-p policy=", "-p policyClass=", "-p blocks=", "-p rule=", "s3-fifo");
        assertThat(run("-h")).isEqualTo(help);
    }

    @Test
    void givenSharesAndCounts_whenParsed_thenBlocksOfTheTrace() {
        assertThat(HitRateParameters.Capacity.parse("3%").of(1000)).isEqualTo(30);
        assertThat(HitRateParameters.Capacity.parse("0.01%").of(1000)).isEqualTo(1);
        assertThat(HitRateParameters.Capacity.parse("3").of(1000)).isEqualTo(3);
        assertThat(HitRateParameters.Capacity.parse("2147483647").of(1000)).isEqualTo(Integer.MAX_VALUE);
    }

    @Test
    void givenNamesAndClasses_whenParsed_thenEachIsItsPolicy() {
        assertThat(HitRateParameters.policy("belady").commandName()).isEqualTo("belady");
        assertThat(HitRateParameters.policy("s3-fifo").commandName()).isEqualTo("s3-fifo");
        assertThat(HitRateParameters.policy(Lru2.class.getName()).commandName()).isEqualTo("Lru2");
    }
}
