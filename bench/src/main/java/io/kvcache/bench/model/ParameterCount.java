package io.kvcache.bench.model;

import java.util.List;

/// Counts a model's parameters by its `config.json`: embeddings, projections and gated feed-forward layers.
/// Norms, biases, small convolutions and what reads images are left out, together a few percent.
final class ParameterCount {

    /// Bits of a weight in MXFP4, with its share of the scale of 32.
    private static final double MXFP4_BITS = 4.25;

    private static final List<String> EXPERT_COUNTS = List.of("n_routed_experts", "num_local_experts", "num_experts");

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
        double query = queryRank == 0 ? hidden * heads * (nope + rope) : queryRank * (hidden + heads * (nope + rope));
        return query + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden;
    }

    private double compressed() {
        double queryRank = config.required("q_lora_rank");
        double outRank = config.required("o_lora_rank");
        double query = queryRank * (hidden + (double) heads * headDim);
        return query + hidden * headDim + outRank * ((double) heads * headDim + config.required("o_groups") * hidden);
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
            default -> config.quantization("bits").map(bits -> bits.asDouble(0)).orElse(groupBits());
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

    /// Bits of the first group of weights in the format of compressed-tensors; those of the type where there is
    /// none.
    private double groupBits() {
        return config.quantization("config_groups").stream()
                .flatMap(groups -> groups.valueStream())
                .map(group -> group.path("weights").path("num_bits").asDouble(0))
                .filter(bits -> bits > 0)
                .findFirst()
                .orElse(8.0 * config.dtype().bytes());
    }
}
