package io.kvcache.planner.model;

import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.planner.model.ModelProfile.AttentionLayers;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// Well-known models, by their public configurations. Parameters and sizes of weights are as published, without
/// those that read images where these are apart.
public final class ModelCatalogue {

    /// The recurrent state is kept in 32 bits, the last inputs of the convolution in 16.
    private static final long QWEN_STATE_OF_32_HEADS = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2;

    private static final long QWEN_STATE_OF_64_HEADS = 64 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 64 * 128) * 2;

    private static final List<ModelProfile> MODELS = List.of(
            ModelProfile.of(ModelPreset.LLAMA_3_8B, 16.06e9),
            ModelProfile.of(ModelPreset.LLAMA_3_70B, 141.2e9),
            ModelProfile.of(ModelPreset.QWEN3_32B, 65.6e9),
            ModelProfile.of(ModelPreset.DEEPSEEK_V3, 671e9),
            llama4("llama-4-scout", 218e9),
            llama4("llama-4-maverick", 800e9),
            hybrid("qwen3-next-80b-a3b", 12, 16, 36 * QWEN_STATE_OF_32_HEADS, 3e9, 160e9),
            hybrid("qwen3.5-35b-a3b", 10, 16, 30 * QWEN_STATE_OF_32_HEADS, 3e9, 70e9),
            hybrid("qwen3.5-397b-a17b", 15, 32, 45 * QWEN_STATE_OF_64_HEADS, 17e9, 794e9),
            gptOss("gpt-oss-20b", 12, 3.61e9, 13.7e9),
            gptOss("gpt-oss-120b", 18, 5.13e9, 65.3e9),
            gemma3("gemma-3-12b", 8, 40, 8, 16, 256, 11.8e9),
            gemma3("gemma-3-27b", 10, 52, 16, 32, 128, 27e9),
            deepSeekV4Flash(),
            plain("kimi-k2", List.of(AttentionLayers.full(61, 576, 2 * 64 * (192 + 128))), 32e9, 1.03e12));

    private ModelCatalogue() {}

    /// The model of a name such as `gpt-oss-120b`, in any case.
    public static Optional<ModelProfile> named(String name) {
        return MODELS.stream()
                .filter(model -> model.label().equalsIgnoreCase(name))
                .findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return MODELS.stream().map(ModelProfile::label).collect(Collectors.joining(", "));
    }

    /// The names of models with recurrent states, for messages.
    public static String recurrentNames() {
        return MODELS.stream()
                .filter(model -> model.stateBytes() > 0)
                .map(ModelProfile::label)
                .collect(Collectors.joining(", "));
    }

    /// Every fourth layer keeps all tokens, the others a chunk of 8,192; 40 heads over 8.
    private static ModelProfile llama4(String label, double weightBytes) {
        return plain(
                label,
                List.of(
                        AttentionLayers.full(12, 2 * 8 * 128, 4 * 40 * 128),
                        AttentionLayers.chunked(36, 2 * 8 * 128, 8192, 4 * 40 * 128)),
                17e9,
                weightBytes);
    }

    /// Every fourth layer has attention, with two heads of K and V, 256 wide; the others have a state.
    private static ModelProfile hybrid(
            String label, int layers, int heads, long stateBytes, double activeParameters, double weightBytes) {
        return new ModelProfile(
                label,
                List.of(AttentionLayers.full(layers, 2 * 2 * 256, 4 * heads * 256)),
                Dtype.BF16,
                stateBytes,
                activeParameters,
                weightBytes);
    }

    /// Every other layer has a window of 128; 64 heads over 8, 64 wide.
    private static ModelProfile gptOss(String label, int layersOfAKind, double activeParameters, double weightBytes) {
        return plain(
                label,
                List.of(
                        AttentionLayers.full(layersOfAKind, 2 * 8 * 64, 4 * 64 * 64),
                        AttentionLayers.sliding(layersOfAKind, 2 * 8 * 64, 128, 4 * 64 * 64)),
                activeParameters,
                weightBytes);
    }

    /// Every sixth layer keeps all tokens, the others a window of 1,024.
    private static ModelProfile gemma3(
            String label, int full, int sliding, int kvHeads, int heads, int headDim, double parameters) {
        return plain(
                label,
                List.of(
                        AttentionLayers.full(full, 2L * kvHeads * headDim, 4.0 * heads * headDim),
                        AttentionLayers.sliding(sliding, 2L * kvHeads * headDim, 1024, 4.0 * heads * headDim)),
                parameters,
                2 * parameters);
    }

    /// All 43 layers have a window of 128 rows that are K and V at once. 21 of them also keep a row and a key of
    /// the index for every 4 tokens and read 512 rows; 20 keep and read a row for every 128 tokens. What the
    /// compressors hold between two rows is left out. The weights are computed from the configuration, experts
    /// in 4 bits and the rest in 8.
    private static ModelProfile deepSeekV4Flash() {
        double flopsPerRow = 4 * 64 * 512;
        return plain(
                "deepseek-v4-flash",
                List.of(
                        AttentionLayers.sliding(43, 512, 128, flopsPerRow),
                        AttentionLayers.full(21, (512 + 128) / 4, 2.0 * 64 * 128 / 4),
                        AttentionLayers.sliding(21, 0, 512, flopsPerRow),
                        AttentionLayers.full(20, 512 / 128, flopsPerRow / 128)),
                13e9,
                155e9);
    }

    private static ModelProfile plain(
            String label, List<AttentionLayers> attention, double activeParameters, double weightBytes) {
        return new ModelProfile(label, attention, Dtype.BF16, 0, activeParameters, weightBytes);
    }
}
