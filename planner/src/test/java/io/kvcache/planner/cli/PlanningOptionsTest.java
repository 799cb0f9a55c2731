package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.planner.cli.CommandRunner.CommandResult;
import io.kvcache.planner.model.ModelCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PlanningOptionsTest {

    private static final String CONFIG = """
            {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
             "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
             "tie_word_embeddings": true}
            """;

    @Test
    void givenAModelsFolder_whenSized_thenItsBytesAndWhatWasDerived(@TempDir Path folder) throws IOException {
        Path model = Files.createDirectory(folder.resolve("my-model"));
        Files.writeString(model.resolve("config.json"), CONFIG);
        CommandResult byFolder = size("--model", model.toString());
        CommandResult byFile = size("--model", model.resolve("config.json").toString());
        assertThat(byFolder.exitCode()).isZero();
        assertThat(byFolder.out()).contains("of my-model").isEqualTo(byFile.out());
        assertThat(byFolder.err())
                .contains("derived from " + model.resolve("config.json") + ": my-model: 32,768 bytes of KV a token")
                .contains("1.2 billion active parameters, 2.5 GB of weights");
    }

    @Test
    void givenOtherBytesOrTypes_whenCurvesAreDrawn_thenMemoryInProportion() {
        assertThat(bytes("--model", "llama-3-8b")).isEqualTo(4096 * 32 * 512L);
        assertThat(bytes("--kv-dtype", "fp8")).isEqualTo(2048 * 32 * 512L);
        assertThat(bytes("--bytes-per-token", "1000")).isEqualTo(1000 * 512L);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--model|gpt-9|--model is 'gpt-9', must be: llama-3-8b",
                "--kv-dtype|fp4|--kv-dtype is 'fp4', must be: fp32, fp16, bf16, fp8",
                "--bytes-per-token|0|--bytes-per-token is '0', must be: 1 to 1073741824",
                "--gpu|v100|--gpu is 'v100', must be: a100, h100, h200, b200, l40s, mi300x, or figures as memory=80GB",
                "--gpu|memory=9GB:flops=1e15:link=1GB|--gpus is '1', must be: 2 and up",
            })
    void givenAWrongValue_whenSized_thenTheErrorNamesItAndWhatIsAllowed(String option, String value, String error) {
        CommandResult result = size(option, value);
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err()).contains(error);
    }

    @Test
    void givenAHybridModel_whenSized_thenARemarkOnItsStates() {
        assertThat(size("--model", "qwen3-next-80b-a3b", "--gpus", "4").err())
                .contains("qwen3-next-80b-a3b: 24,576 bytes of KV a token (bf16)")
                .contains("73.7 MiB of recurrent states");
    }

    @Test
    void givenPrices_whenSized_thenEachTiersMonthInMoney() {
        CommandResult priced = size("--price", "gpu=2.5,host=2,disk=0.1");
        assertThat(priced.exitCode()).isZero();
        assertThat(priced.out()).containsPattern("a month +costs 0.00, saves [0-9,.]+ GPU-hours .*: gains ");
        assertThat(size().out()).doesNotContain("a month");
        assertThat(size("--price", "gpu=2.5").err())
                .contains("--price is 'gpu=2.5', must be: gpu=2.50,host=2,disk=0.1");
    }

    @Test
    void givenPrices_whenTiersAreCompared_thenEachRowsMonthInMoney() {
        String[] words = {"lab", "tiers", "--trace", "agents:5:requests=300:sessions=5", "--policy", "belady"};
        String out =
                run(words, "--disk", "100", "--price", "gpu=2.5,host=0,disk=0").out();
        Matcher money = Pattern.compile("saves ([0-9,.]+) GPU-hours \\(([0-9,.]+)\\): gains ([0-9,.]+)")
                .matcher(out);
        assertThat(money.find()).isTrue();
        assertThat(number(money.group(1))).isPositive();
        assertThat(number(money.group(2))).isCloseTo(2.5 * number(money.group(1)), within(0.2));
        assertThat(money.group(3)).isEqualTo(money.group(2));
        assertThat(run(words, "--price", "gpu=1,host=1,disk=1", "--json").err())
                .contains("--price is given, must be: absent with --format json or csv");
    }

    private static double number(String text) {
        return Double.parseDouble(text.replace(",", ""));
    }

    @Test
    void givenHelp_whenPrinted_thenItNamesAllModels() {
        String help = CommandRunner.run("size", "--help").out().replaceAll("\\s", "");
        assertThat(help).contains(ModelCatalogue.names().replace(" ", ""));
    }

    private static CommandResult run(String[] words, String... options) {
        String[] all = Arrays.copyOf(words, words.length + options.length);
        System.arraycopy(options, 0, all, words.length, options.length);
        return CommandRunner.run(all);
    }

    private static CommandResult size(String... options) {
        String[] words = {"size", "--trace", "agents:5:requests=300:sessions=5", "--target-hit", "0.3"};
        return run(words, options);
    }

    /// Bytes of the smallest capacity of a curve: one block.
    private static long bytes(String option, String value) {
        String json = CommandRunner.run(
                        "lab", "curve", "--trace", "generated:5", "--share", "0.000001", "--json", option, value)
                .out();
        return Long.parseLong(json.replaceAll("(?s).*\"bytes\":(\\d+).*", "$1"));
    }
}
