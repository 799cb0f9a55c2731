package io.kvcache.planner.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.withinPercentage;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.ModelPreset;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

final class ModelConfigReaderTest {

    @TempDir
    Path folder;

    /// The figures are computed by hand from the public numbers: bytes of KV a token in BF16, and of states and
    /// of windows a sequence.
    @ParameterizedTest
    @CsvSource({
        "llama-3-8b, 131072, 0, 0",
        "llama-3-70b, 327680, 0, 0",
        "qwen3-32b, 262144, 0, 0",
        "deepseek-v3, 70272, 0, 0",
        "kimi-k2, 70272, 0, 0",
        "llama-4-scout, 49152, 0, 1207959552",
        "llama-4-maverick, 49152, 0, 1207959552",
        "qwen3-next-80b-a3b, 24576, 77266944, 0",
        "qwen3.5-35b-a3b, 20480, 64389120, 0",
        "qwen3.5-397b-a17b, 30720, 192061440, 0",
        "gpt-oss-20b, 24576, 0, 3145728",
        "gpt-oss-120b, 36864, 0, 4718592",
        "gemma-3-12b, 65536, 0, 335544320",
        "gemma-3-27b, 81920, 0, 436207616",
        "deepseek-v4-flash, 6880, 0, 5636096",
    })
    void givenConfigOfAPreset_whenRead_thenThePresetsBytesAndNearlyItsParameters(
            String name, long bytesPerToken, long stateBytes, long windowBytes) throws IOException {
        ModelProfile preset = ModelCatalogue.named(name).orElseThrow();
        ModelProfile read = read(config(name));
        assertThat(read.kvBytesPerToken()).isEqualTo(bytesPerToken).isEqualTo(preset.kvBytesPerToken());
        assertThat(read.stateBytes()).isEqualTo(stateBytes).isEqualTo(preset.stateBytes());
        assertThat(read.windowBytes()).isEqualTo(windowBytes).isEqualTo(preset.windowBytes());
        assertThat(read.attention()).isEqualTo(preset.attention());
        assertThat(read.weightBytes()).isCloseTo(preset.weightBytes(), withinPercentage(4));
        boolean roundedName = name.contains("a3b");
        assertThat(read.activeParameters())
                .isCloseTo(preset.activeParameters(), withinPercentage(roundedName ? 30 : 8));
    }

    @ParameterizedTest
    @EnumSource
    void givenPresetOfTheStore_whenPlanned_thenItsPrefillCost(ModelPreset preset) {
        ModelProfile model = ModelCatalogue.named(preset.label()).orElseThrow();
        assertThat(model.kvBytesPerToken()).isEqualTo(preset.kvBytesPerToken());
        PrefillCost planned = model.prefillCost(1e15);
        PrefillCost own = PrefillCost.of(preset, 1e15);
        assertThat(planned.secondsPerToken()).isCloseTo(own.secondsPerToken(), withinPercentage(1e-9));
        assertThat(planned.secondsPerPair()).isCloseTo(own.secondsPerPair(), withinPercentage(1e-9));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"num_key_value_heads\": 8|\"num_key_value_heads\": 0|num_key_value_heads is 0, must be: 1 to 100000000",
                "\"num_key_value_heads\": 8|\"num_key_value_heads\": 7|num_key_value_heads is 7, must be: a divisor of",
                "\"num_hidden_layers\": 32,|''|num_hidden_layers is missing, must be: 1 to 100000000",
                "\"num_hidden_layers\": 32|\"num_hidden_layers\": \"many\"|num_hidden_layers is \"many\", must be: 1 to",
                "\"num_hidden_layers\": 32|\"num_hidden_layers\": 10001|num_hidden_layers is 10001, must be: 1 to 10000",
                "\"vocab_size\": 128256,|''|vocab_size is missing, must be: 1 to 100000000",
                "\"hidden_size\": 4096|\"hidden_size\": 4095|hidden_size is 4095, must be: a multiple of the 32 heads",
                "\"model_type\": \"llama\"|\"model_type\": \"mamba2\"|model_type is 'mamba2', must be: one of attention",
                "\"bfloat16\"|\"bf17\"|torch_dtype is 'bf17', must be: bfloat16, float16, float32",
                "\"bfloat16\"|\"bfloat16\", \"layer_types\": [\"full_attention\"]|layer_types is 1 names, must be: 32",
                "\"bfloat16\"|\"bfloat16\", \"num_kv_shared_layers\": 4|num_kv_shared_layers is 4, must be: 0",
                "\"bfloat16\"|\"bfloat16\", \"attn_type_list\": [0, 1]|attn_type_list is with 0, must be: of 1",
                "\"bfloat16\"|\"bfloat16\", \"mamba_d_state\": 128|mamba_d_state is given, must be: absent",
                "{|[|cannot be read, must be: JSON",
            })
    void givenAWrongField_whenRead_thenTheErrorNamesFileFieldValueAndWhatIsAllowed(
            String text, String replacement, String error) throws IOException {
        String wrong = config("llama-3-8b").replace(text, replacement);
        assertThatThrownBy(() -> read(wrong))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(folder.resolve("config.json").toString())
                .hasMessageContaining(error);
    }

    @ParameterizedTest
    @ValueSource(strings = {"deepseek-v3", "deepseek-v4-flash", "gpt-oss-20b", "llama-4-scout", "qwen3.5-35b-a3b"})
    void givenNonsenseInAnyField_whenRead_thenAnErrorThatNamesTheFileOrAModel(String name) throws IOException {
        JsonMapper mapper = JsonMapper.builder().build();
        int errors = 0;
        for (String path : List.of("", "/text_config")) {
            for (String field : ((ObjectNode) fields(mapper, name, path)).propertyNames()) {
                for (String nonsense : List.of("\"x\"", "-1", "0", "1e300", "[]", "[{}]", "{}", "true", "null")) {
                    JsonNode config = mapper.readTree(config(name));
                    ((ObjectNode) fields(config, path)).set(field, mapper.readTree(nonsense));
                    errors += isError(config.toString()) ? 1 : 0;
                }
            }
        }
        assertThat(errors).isGreaterThan(50);
    }

    private static JsonNode fields(JsonMapper mapper, String name, String path) throws IOException {
        return fields(mapper.readTree(config(name)), path);
    }

    private static JsonNode fields(JsonNode config, String path) {
        JsonNode inner = config.at(path);
        return inner.isObject() ? inner : config;
    }

    private boolean isError(String json) throws IOException {
        try {
            ModelProfile read = read(json);
            assertThat(read.kvBytesPerToken() + read.windowBytes()).as(json).isPositive();
            assertThat(read.stateBytes()).as(json).isNotNegative();
            assertThat(read.activeParameters()).as(json).isPositive();
            assertThat(read.weightBytes()).as(json).isPositive();
            return false;
        } catch (IllegalArgumentException error) {
            assertThat(error).hasMessageContaining("config.json").hasMessageContaining("must be: ");
            return true;
        }
    }

    @Test
    void givenAnUnknownKindOfLayer_whenRead_thenTheErrorNamesIt() throws IOException {
        String wrong = config("gpt-oss-20b").replaceFirst("\"full_attention\"", "\"half_attention\"");
        assertThatThrownBy(() -> read(wrong))
                .hasMessageContaining("layer_types is 'half_attention', must be: full_attention, sliding_attention");
    }

    @Test
    void givenQuantizedKv_whenRead_thenAByteAnElement() throws IOException {
        String quantized = config("llama-3-8b")
                .replace(
                        "\"bfloat16\"",
                        "\"bfloat16\", \"quantization_config\": {\"quant_method\": \"compressed-tensors\","
                                + " \"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 8}}},"
                                + " \"kv_cache_scheme\": {\"num_bits\": 8, \"type\": \"float\"}}");
        ModelProfile read = read(quantized);
        assertThat(read.kvDtype()).isEqualTo(Dtype.FP8_E4M3);
        assertThat(read.kvBytesPerToken()).isEqualTo(65536);
        assertThat(read.weightBytes()).isBetween(8e9, 10e9);
    }

    @Test
    void givenWindowsOnlyFromALayerOn_whenRead_thenTheOthersKeepAllTokens() throws IOException {
        String sliding = config("qwen3-32b")
                .replace("\"sliding_window\": null", "\"sliding_window\": 4096")
                .replace("\"use_sliding_window\": false", "\"use_sliding_window\": true")
                .replace("\"max_window_layers\": 64", "\"max_window_layers\": 16");
        ModelProfile read = read(sliding);
        assertThat(read.kvBytesPerToken()).isEqualTo(16 * 4096);
        assertThat(read.windowBytes()).isEqualTo(48L * 4096 * 4096);
    }

    @Test
    void givenSparseAttention_whenRead_thenTheIndexIsKeptAndTheRestReadsOnlyItsBest() throws IOException {
        String sparse = config("deepseek-v3")
                .replace(
                        "\"torch_dtype\"",
                        "\"index_topk\": 2048, \"index_n_heads\": 64, \"index_head_dim\": 128, \"torch_dtype\"");
        ModelProfile read = read(sparse);
        assertThat(read.kvBytesPerToken()).isEqualTo(61 * (512 + 64 + 128) * 2);
        assertThat(read.windowBytes()).isZero();
        double dense = read(config("deepseek-v3")).prefillCost(1).secondsPerPair();
        assertThat(read.prefillCost(1).secondsPerPair()).isCloseTo(dense / 5, withinPercentage(1));
    }

    private ModelProfile read(String json) throws IOException {
        Path file = folder.resolve("config.json");
        Files.writeString(file, json);
        return ModelConfigReader.read(file).model();
    }

    private static String config(String name) throws IOException {
        try (InputStream stream = ModelConfigReaderTest.class.getResourceAsStream(name + ".json")) {
            return new String(Objects.requireNonNull(stream, name).readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
