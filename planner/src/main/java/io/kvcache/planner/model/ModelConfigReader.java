package io.kvcache.planner.model;

import io.kvcache.core.identity.Dtype;
import io.kvcache.planner.model.ModelProfile.AttentionLayers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Derives a [ModelProfile] from a model's `config.json` as Hugging Face has it.
///
/// | layers | fields |
/// |---|---|
/// | grouped and multi-head attention | `num_key_value_heads`, `head_dim` |
/// | latents | `kv_lora_rank` and `qk_rope_head_dim`; `index_head_dim` beside them |
/// | windows | `layer_types`, `sliding_window`, `sliding_window_pattern`, `max_window_layers` |
/// | chunks | `layer_types`, `attention_chunk_size`, `no_rope_layers` |
/// | recurrent (Qwen3-Next, Qwen3.5) | `layer_types`, `full_attention_interval`, `linear_*` |
/// | compressed (DeepSeek-V4) | `compress_ratios`, `sliding_window`, `index_head_dim` |
///
/// Recurrent layers of other kinds, and layers that share KV or differ in their heads, are an error.
public final class ModelConfigReader {

    private static final String FULL = "full_attention";
    private static final String SLIDING = "sliding_attention";
    private static final String CHUNKED = "chunked_attention";
    private static final String LINEAR = "linear_attention";

    private static final int MAX_LAYERS = 10_000;

    /// Fields of models whose layers keep something else: recurrent layers of other kinds, layers that share KV,
    /// layers that differ in their heads.
    private static final List<String> UNKNOWN_LAYERS = List.of(
            "linear_attn_config",
            "hybrid_override_pattern",
            "layers_block_type",
            "attn_layer_period",
            "mamba_d_state",
            "ssm_state_size",
            "state_size",
            "kv_source_layer_ids",
            "cross_attention_layers",
            "global_head_dim",
            "attention_k_eq_v",
            "hybrid_layer_pattern",
            "swa_num_key_value_heads",
            "block_configs");

    /// Layers from one that keeps all tokens to the next, where the file does not say.
    private static final Map<String, Integer> DEFAULT_PATTERNS =
            Map.of("gemma3_text", 6, "gemma3", 6, "gemma2", 2, "gpt_oss", 2);

    private final ModelConfig config;
    private final int layers;
    private final int heads;
    private final boolean gemma3;

    private ModelConfigReader(ModelConfig config) {
        this.config = config;
        if (config.modelType().contains("mamba")) {
            throw config.invalid(
                    "model_type", "'" + config.modelType() + "'", "one of attention; use --bytes-per-token");
        }
        gemma3 = config.modelType().startsWith("gemma3");
        layers = config.required("num_hidden_layers");
        if (layers > MAX_LAYERS) {
            throw config.invalid("num_hidden_layers", layers, "1 to " + MAX_LAYERS);
        }
        heads = gemma3 ? config.positive("num_attention_heads", 8) : config.required("num_attention_heads");
    }

    /// A model, and what was derived.
    ///
    /// @param remark for people
    public record DerivedModel(ModelProfile model, String remark) {}

    /// Reads a file.
    ///
    /// @throws IllegalArgumentException that names the file, the field, its value and what is allowed
    public static DerivedModel read(Path file) {
        ModelConfig config = ModelConfig.read(file);
        ModelProfile model = new ModelConfigReader(config).profile();
        return new DerivedModel(model, "derived from " + file + ": " + model.derivation());
    }

    private ModelProfile profile() {
        for (String field : UNKNOWN_LAYERS) {
            if (config.has(field)) {
                throw config.invalid(
                        field, "given", "absent, as what such layers keep is not known here; use --bytes-per-token");
            }
        }
        if (config.count("num_kv_shared_layers") > 0) {
            throw config.invalid(
                    "num_kv_shared_layers", config.count("num_kv_shared_layers"), "0; use --bytes-per-token");
        }
        if (config.numbers("attn_type_list").contains(0)) {
            throw config.invalid("attn_type_list", "with 0", "of 1, attention with KV; use --bytes-per-token");
        }
        List<String> kinds = config.has("compress_ratios") ? List.of() : layerKinds();
        ParameterCount parameters = new ParameterCount(config, layers, heads, headDim(), count(kinds, LINEAR));
        return new ModelProfile(
                config.label(),
                config.has("compress_ratios") ? compressed() : attention(kinds),
                kvDtype(),
                count(kinds, LINEAR) == 0 ? 0 : count(kinds, LINEAR) * recurrentBytes(),
                parameters.active(),
                parameters.weightBytes());
    }

    private static int count(List<String> kinds, String kind) {
        return (int) kinds.stream().filter(kind::equals).count();
    }

    private Dtype kvDtype() {
        boolean eightBits = config.quantization("kv_cache_scheme")
                        .filter(scheme -> scheme.path("num_bits").intValue(0) == 8)
                        .isPresent()
                || config.quantization("kv_cache_quant_algo")
                        .filter(algorithm -> algorithm.asString("").equals("FP8"))
                        .isPresent();
        return eightBits ? Dtype.FP8_E4M3 : config.dtype();
    }

    private int headDim() {
        if (config.has("head_dim")) {
            return config.required("head_dim");
        }
        int hidden = config.required("hidden_size");
        if (gemma3) {
            return 256;
        }
        if (hidden % heads != 0) {
            throw config.invalid("hidden_size", hidden, "a multiple of the " + heads + " heads, or head_dim given");
        }
        return hidden / heads;
    }

    private List<AttentionLayers> attention(List<String> kinds) {
        List<AttentionLayers> found = new ArrayList<>();
        long row = rowElements();
        double flops = flopsPerPair();
        int full = count(kinds, FULL);
        if (full > 0 && config.has("index_topk")) {
            found.add(AttentionLayers.full(full, row, indexFlops()));
            found.add(AttentionLayers.sliding(full, 0, config.required("index_topk"), flops));
        } else if (full > 0) {
            found.add(AttentionLayers.full(full, row, flops));
        }
        if (kinds.contains(SLIDING)) {
            found.add(AttentionLayers.sliding(count(kinds, SLIDING), row, config.required("sliding_window"), flops));
        }
        if (kinds.contains(CHUNKED)) {
            found.add(AttentionLayers.chunked(
                    count(kinds, CHUNKED), row, config.required("attention_chunk_size"), flops));
        }
        return found;
    }

    private long rowElements() {
        if (config.has("kv_lora_rank")) {
            return (long) config.required("kv_lora_rank")
                    + config.required("qk_rope_head_dim")
                    + config.count("index_head_dim");
        }
        return (long) kvHeads() * (headDim() + config.positive("v_head_dim", headDim()));
    }

    private int kvHeads() {
        int kvHeads = config.positive("num_key_value_heads", gemma3 ? 4 : heads);
        if (heads % kvHeads != 0) {
            throw config.invalid("num_key_value_heads", kvHeads, "a divisor of the " + heads + " heads");
        }
        return kvHeads;
    }

    private double flopsPerPair() {
        if (config.has("kv_lora_rank")) {
            return 2.0
                    * heads
                    * (config.required("qk_nope_head_dim")
                            + config.required("qk_rope_head_dim")
                            + config.required("v_head_dim"));
        }
        return 2.0 * heads * (headDim() + config.positive("v_head_dim", headDim()));
    }

    private double indexFlops() {
        return 2.0 * config.required("index_n_heads") * config.required("index_head_dim");
    }

    /// DeepSeek-V4: each layer has a window of rows that are K and V at once, and a ratio: 0 for the window
    /// alone, 4 for a row and an index key every 4 tokens, 128 for a row every 128 tokens. The ratios of layers
    /// that predict further tokens follow those of the model.
    private List<AttentionLayers> compressed() {
        List<Integer> ratios = config.numbers("compress_ratios");
        if (ratios.size() < layers || !List.of(0, 4, 128).containsAll(ratios)) {
            throw config.invalid("compress_ratios", ratios, layers + " or more of 0, 4 and 128");
        }
        int dim = config.required("head_dim");
        double flops = 4.0 * heads * dim;
        int indexed =
                (int) ratios.stream().limit(layers).filter(ratio -> ratio == 4).count();
        int dense = (int)
                ratios.stream().limit(layers).filter(ratio -> ratio == 128).count();
        int indexDim = config.required("index_head_dim");
        if (dim % 128 != 0 || indexDim % 4 != 0) {
            throw config.invalid("head_dim", dim, "a multiple of 128, and index_head_dim (" + indexDim + ") of 4");
        }
        return List.of(
                AttentionLayers.sliding(layers, dim, config.required("sliding_window"), flops),
                AttentionLayers.full(indexed, (dim + indexDim) / 4, indexFlops() / 4),
                AttentionLayers.sliding(indexed, 0, config.required("index_topk"), flops),
                AttentionLayers.full(dense, dim / 128, flops / 128));
    }

    private long recurrentBytes() {
        String stateDtype = config.text("mamba_ssm_dtype");
        if (!List.of("", "float32", "bfloat16").contains(stateDtype)) {
            throw config.invalid("mamba_ssm_dtype", "'" + stateDtype + "'", "float32, bfloat16");
        }
        long keys = (long) config.required("linear_num_key_heads") * config.required("linear_key_head_dim");
        long values = (long) config.required("linear_num_value_heads") * config.required("linear_value_head_dim");
        long state = values * config.required("linear_key_head_dim") * (stateDtype.equals("bfloat16") ? 2 : 4);
        long inputs = (config.required("linear_conv_kernel_dim") - 1) * (2 * keys + values);
        return state + inputs * config.dtype().bytes();
    }

    /// The kind of each layer.
    private List<String> layerKinds() {
        List<String> named = config.texts("layer_types");
        List<String> kinds = named.isEmpty() ? derivedKinds() : named;
        if (kinds.size() != layers) {
            throw config.invalid("layer_types", kinds.size() + " names", layers + ", one for each layer");
        }
        for (String kind : kinds) {
            if (!List.of(FULL, SLIDING, CHUNKED, LINEAR).contains(kind)) {
                throw config.invalid(
                        "layer_types", "'" + kind + "'", String.join(", ", FULL, SLIDING, CHUNKED, LINEAR));
            }
        }
        return kinds.stream()
                .map(kind -> kind.equals(SLIDING) && !slides() ? FULL : kind)
                .toList();
    }

    /// A window that is as long as a prompt may be is none.
    private boolean slides() {
        return config.has("sliding_window")
                && config.flag("use_sliding_window", true)
                && config.count("sliding_window") < config.positive("max_position_embeddings", Integer.MAX_VALUE);
    }

    private List<String> derivedKinds() {
        if (config.has("full_attention_interval") || config.has("linear_num_value_heads")) {
            return everyNth(config.positive("full_attention_interval", 4), LINEAR);
        }
        if (config.has("attention_chunk_size")) {
            List<Integer> rotated = config.numbers("no_rope_layers");
            return rotated.isEmpty()
                    ? everyNth(config.positive("no_rope_layer_interval", 4), CHUNKED)
                    : rotated.stream().map(rope -> rope == 0 ? FULL : CHUNKED).toList();
        }
        if (!slides()) {
            return everyNth(1, FULL);
        }
        int pattern = config.positive(
                config.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern",
                DEFAULT_PATTERNS.getOrDefault(config.modelType(), 0));
        if (pattern > 0) {
            return everyNth(pattern, SLIDING);
        }
        int firstSliding = config.count("max_window_layers");
        return IntStream.range(0, layers)
                .mapToObj(layer -> layer < firstSliding ? FULL : SLIDING)
                .toList();
    }

    /// Every nth layer keeps all tokens.
    private List<String> everyNth(int interval, String others) {
        return IntStream.rangeClosed(1, layers)
                .mapToObj(layer -> layer % interval == 0 ? FULL : others)
                .toList();
    }

    /// Counts a model's parameters by its `config.json`: embeddings, projections and gated feed-forward layers.
    /// Norms, biases, small convolutions and what reads images are left out, together a few percent.
    private static final class ParameterCount {

        /// Bits of a weight in MXFP4, with its share of the scale of 32.
        private static final double MXFP4_BITS = 4.25;

        private static final List<String> EXPERT_COUNTS =
                List.of("n_routed_experts", "num_local_experts", "num_experts");

        private final ModelConfig config;
        private final int layers;
        private final int heads;
        private final int headDim;
        private final int linearLayers;
        private final long hidden;

        /// @param headDim of a layer of attention without a latent
        /// @param linearLayers of all, those that have a recurrent state
        ParameterCount(ModelConfig config, int layers, int heads, int headDim, int linearLayers) {
            this.config = config;
            this.layers = layers;
            this.heads = heads;
            this.headDim = headDim;
            this.linearLayers = linearLayers;
            hidden = config.required("hidden_size");
        }

        /// Parameters that compute one token, with those that choose the next.
        double active() {
            int perToken = expertLayers() == 0 ? 0 : config.required("num_experts_per_tok");
            return mixers() + dense() + (double) expertLayers() * perToken * expert() + vocabulary();
        }

        /// Bytes of all weights.
        double weightBytes() {
            boolean tied = config.flag("tie_word_embeddings", config.modelType().startsWith("gemma"));
            double embeddings = vocabulary() * (tied ? 1 : 2) * config.dtype().bytes();
            double experts = (double) expertLayers() * experts() * expert();
            return embeddings + (mixers() + dense()) * bitsOfDense() / 8 + experts * bitsOfExperts() / 8;
        }

        private double vocabulary() {
            boolean gemma3 = config.modelType().startsWith("gemma3");
            return (double) hidden * (gemma3 ? config.positive("vocab_size", 262208) : config.required("vocab_size"));
        }

        private double mixers() {
            double attention;
            if (config.has("compress_ratios")) {
                attention = compressed();
            } else if (config.has("kv_lora_rank")) {
                attention = latent();
            } else {
                attention = grouped();
            }
            return attention * (layers - linearLayers) + (linearLayers == 0 ? 0 : linearLayers * linear());
        }

        private double grouped() {
            boolean gated = config.flag("attn_output_gate", linearLayers > 0);
            double kvHeads = config.positive("num_key_value_heads", heads);
            double query = (double) hidden * heads * headDim;
            return query * (gated ? 3 : 2) + 2 * hidden * kvHeads * headDim;
        }

        private double latent() {
            double rope = config.required("qk_rope_head_dim");
            double nope = config.required("qk_nope_head_dim");
            double value = config.required("v_head_dim");
            double latent = config.required("kv_lora_rank");
            double queryRank = config.count("q_lora_rank");
            double query =
                    queryRank == 0 ? hidden * heads * (nope + rope) : queryRank * (hidden + heads * (nope + rope));
            return query + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden;
        }

        private double compressed() {
            double queryRank = config.required("q_lora_rank");
            double outRank = config.required("o_lora_rank");
            double query = queryRank * (hidden + (double) heads * headDim);
            return query
                    + hidden * headDim
                    + outRank * ((double) heads * headDim + config.required("o_groups") * hidden);
        }

        private double linear() {
            double keys = (double) config.required("linear_num_key_heads") * config.required("linear_key_head_dim");
            double valueHeads = config.required("linear_num_value_heads");
            double values = valueHeads * config.required("linear_value_head_dim");
            return hidden * (2 * keys + 3 * values + 2 * valueHeads);
        }

        private int experts() {
            return EXPERT_COUNTS.stream()
                    .mapToInt(config::count)
                    .filter(count -> count > 0)
                    .findFirst()
                    .orElse(0);
        }

        /// Layers with experts: the first may have none, or only every nth has them.
        private int expertLayers() {
            if (experts() == 0) {
                return 0;
            }
            int step = config.positive("interleave_moe_layer_step", config.positive("decoder_sparse_step", 1));
            return Math.max(0, layers - config.count("first_k_dense_replace")) / step;
        }

        private double expert() {
            return 3.0 * hidden * config.positive("moe_intermediate_size", config.count("intermediate_size"));
        }

        /// Feed-forward layers without experts, the experts that every token takes, and routers.
        private double dense() {
            if (expertLayers() == 0) {
                return 3.0 * hidden * config.required("intermediate_size") * layers;
            }
            int denseLayers = layers - expertLayers();
            int width = denseLayers == 0
                    ? 0
                    : config.positive("intermediate_size_mlp", config.positive("intermediate_size", 0));
            double shared = config.has("interleave_moe_layer_step")
                    ? expert()
                    : config.count("n_shared_experts") * expert()
                            + 3.0 * hidden * config.count("shared_expert_intermediate_size");
            return 3.0 * hidden * width * denseLayers + expertLayers() * (shared + (double) hidden * experts());
        }

        private double bitsOfDense() {
            return switch (method()) {
                case "mxfp4" -> 8 * config.dtype().bytes();
                case "fp8", "fbgemm_fp8" -> 8;
                default ->
                    config.quantization("bits").map(bits -> bits.asDouble(0)).orElse(groupBits());
            };
        }

        private double bitsOfExperts() {
            boolean fourBits =
                    method().equals("mxfp4") || config.text("expert_dtype").equals("fp4");
            return fourBits ? MXFP4_BITS : bitsOfDense();
        }

        private String method() {
            return config.quantization("quant_method")
                    .map(method -> method.asString(""))
                    .orElse("");
        }

        /// Bits of the first group of weights in the format of compressed-tensors; those of the type where there
        /// is none.
        private double groupBits() {
            return config.quantization("config_groups").stream()
                    .flatMap(groups -> groups.valueStream())
                    .map(group -> group.path("weights").path("num_bits").asDouble(0))
                    .filter(bits -> bits > 0)
                    .findFirst()
                    .orElse(8.0 * config.dtype().bytes());
        }
    }

    /// The fields of a model's `config.json`, each checked when it is read. In a model of several kinds of
    /// input the fields of `text_config` come first.
    static final class ModelConfig {

        private static final JsonMapper JSON = JsonMapper.builder().build();
        private static final int MAX_NUMBER = 100_000_000;

        private final Path file;
        private final JsonNode root;
        private final JsonNode text;

        private ModelConfig(Path file, JsonNode root) {
            this.file = file;
            this.root = root;
            JsonNode inner = root.get("text_config");
            text = inner != null && inner.isObject() ? inner : root;
        }

        /// Reads the file.
        ///
        /// @throws IllegalArgumentException that names the file, when it is not a JSON object
        static ModelConfig read(Path file) {
            try {
                JsonNode root = JSON.readTree(Files.readString(file));
                if (root.isObject()) {
                    return new ModelConfig(file, root);
                }
                throw new IllegalArgumentException(file + " is JSON of another kind, must be: an object");
            } catch (IOException e) {
                throw new IllegalArgumentException(file + " cannot be read, must be: JSON in UTF-8 (" + e + ")", e);
            } catch (JacksonException e) {
                throw new IllegalArgumentException(
                        file + " cannot be read, must be: JSON in UTF-8 (" + firstLine(e) + ")", e);
            }
        }

        /// What is wrong, without where Jackson read it from.
        private static String firstLine(JacksonException e) {
            return e.getOriginalMessage().lines().findFirst().orElse("").replaceFirst(" at \\[Source.*", "");
        }

        private Optional<JsonNode> find(String field) {
            JsonNode found = text.get(field);
            if (found == null || found.isNull()) {
                found = root.get(field);
            }
            return Optional.ofNullable(found).filter(value -> !value.isNull());
        }

        /// Returns whether a field is there and not null.
        boolean has(String field) {
            return find(field).isPresent();
        }

        /// A whole number that has to be there.
        int required(String field) {
            return find(field)
                    .map(value -> number(field, value, 1))
                    .orElseThrow(() -> new IllegalArgumentException(
                            file + ": " + field + " is missing, must be: 1 to " + MAX_NUMBER));
        }

        /// A whole number from 1 on.
        ///
        /// @param defaultValue where the field is absent
        int positive(String field, int defaultValue) {
            return find(field).map(value -> number(field, value, 1)).orElse(defaultValue);
        }

        /// A whole number from 0 on.
        ///
        /// @return 0 where the field is absent
        int count(String field) {
            return find(field).map(value -> number(field, value, 0)).orElse(0);
        }

        private int number(String field, JsonNode value, int min) {
            if (!value.isIntegralNumber() || value.longValue() < min || value.longValue() > MAX_NUMBER) {
                throw invalid(field, value, min + " to " + MAX_NUMBER);
            }
            return value.intValue();
        }

        boolean flag(String field, boolean defaultValue) {
            return find(field)
                    .map(value -> {
                        if (!value.isBoolean()) {
                            throw invalid(field, value, "true or false");
                        }
                        return value.booleanValue();
                    })
                    .orElse(defaultValue);
        }

        /// A text; empty where the field is absent.
        String text(String field) {
            return find(field).map(value -> string(field, value)).orElse("");
        }

        private String string(String field, JsonNode value) {
            if (!value.isString()) {
                throw invalid(field, value, "a text");
            }
            return value.stringValue();
        }

        /// Texts of an array; empty where the field is absent.
        List<String> texts(String field) {
            return elements(field).map(value -> string(field, value)).toList();
        }

        /// Whole numbers of an array, from 0 on; empty where the field is absent.
        List<Integer> numbers(String field) {
            return elements(field).map(value -> number(field, value, 0)).toList();
        }

        private Stream<JsonNode> elements(String field) {
            return find(field).stream().flatMap(value -> {
                if (!value.isArray()) {
                    throw invalid(field, value, "an array");
                }
                return value.valueStream();
            });
        }

        /// The model's kind, such as `qwen3_next`.
        String modelType() {
            return text("model_type");
        }

        /// The type that weights and, unless something else is said, KV have.
        Dtype dtype() {
            String name = text(has("torch_dtype") ? "torch_dtype" : "dtype");
            return switch (name.replace("torch.", "")) {
                case "", "bfloat16" -> Dtype.BF16;
                case "float16" -> Dtype.F16;
                case "float32" -> Dtype.F32;
                default ->
                    throw new IllegalArgumentException(
                            file + ": torch_dtype is '" + name + "', must be: bfloat16, float16, float32");
            };
        }

        /// The object of a field of the quantisation.
        Optional<JsonNode> quantization(String field) {
            return find("quantization_config")
                    .or(() -> find("compression_config"))
                    .map(value -> value.get(field))
                    .filter(value -> !value.isNull());
        }

        /// The error of a field with a wrong value.
        IllegalArgumentException invalid(String field, Object value, String allowed) {
            return new IllegalArgumentException(file + ": " + field + " is " + value + ", must be: " + allowed);
        }

        /// The folder's name, or that of a file that is not called `config.json`.
        String label() {
            String name = String.valueOf(file.getFileName());
            if (!name.equals("config.json")) {
                return name.replaceFirst("\\.json$", "");
            }
            Path folder = file.toAbsolutePath().normalize().getParent();
            return folder == null || folder.getFileName() == null
                    ? modelType()
                    : folder.getFileName().toString();
        }
    }
}
