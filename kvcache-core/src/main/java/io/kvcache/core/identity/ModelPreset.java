package io.kvcache.core.identity;

import java.util.Locale;
import java.util.Optional;

/// Storage and compute per token of well-known models.
///
/// **Prefill work.** The token at position `n` costs `2·P + A·n` floating-point operations, `P` the parameters
/// that are active for a token and `A` the attention per pair of positions: `4·heads·dim·layers` with separate
/// K and V of equal width; `2·(192 + 128)·128·61` for DeepSeek-V3, whose scores are 192 wide and values 128
/// (not absorbed). Averaged over a prompt of `n` tokens that is the usual `2·P + A·n/2`.
public enum ModelPreset {
    LLAMA_3_8B(8.03e9, 32, 32, 128, 2, 8, 128),
    LLAMA_3_70B(70.6e9, 80, 64, 128, 2, 8, 128),
    QWEN3_32B(32.8e9, 64, 64, 128, 2, 8, 128),
    /// Stores a latent of 512 elements and a rotated key of 64; its scores and values are 160 wide on average.
    DEEPSEEK_V3(37e9, 61, 128, 160, 1, 1, 576);

    private final double activeParameters;
    private final int layers;
    private final int attentionHeads;
    private final int attentionDim;
    private final int planes;
    private final int kvHeads;
    private final int headDim;

    /// @param attentionDim width of a score and of a value of one head, on average
    /// @param planes as in [BlockShape], like the two that follow: what a layer stores
    ModelPreset(
            double activeParameters,
            int layers,
            int attentionHeads,
            int attentionDim,
            int planes,
            int kvHeads,
            int headDim) {
        this.activeParameters = activeParameters;
        this.layers = layers;
        this.attentionHeads = attentionHeads;
        this.attentionDim = attentionDim;
        this.planes = planes;
        this.kvHeads = kvHeads;
        this.headDim = headDim;
    }

    /// The preset of a name such as `llama-3-8b`, in any case.
    public static Optional<ModelPreset> fromName(String name) {
        for (ModelPreset preset : values()) {
            if (preset.label().equalsIgnoreCase(name)) {
                return Optional.of(preset);
            }
        }
        return Optional.empty();
    }

    /// The name as users write it: `llama-3-8b`.
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /// Parameters that are active for one token.
    public double activeParameters() {
        return activeParameters;
    }

    /// Layers, all of which store KV.
    public int layers() {
        return layers;
    }

    /// Query heads a layer.
    public int attentionHeads() {
        return attentionHeads;
    }

    /// K/V heads a layer stores; 1 for a latent.
    public int kvHeads() {
        return kvHeads;
    }

    /// Elements of a stored row of one head.
    public int headDim() {
        return headDim;
    }

    /// A block of this model on one rank, in the preferred order.
    public BlockShape shape(int blockTokens, Dtype dtype) {
        return new BlockShape(layers, planes, kvHeads, headDim, blockTokens, dtype, AxisOrder.LAYER_KV_HEAD_TOKEN);
    }

    /// Bytes that one token takes in BF16, in all layers.
    public long kvBytesPerToken() {
        return kvBytesPerToken(Dtype.BF16);
    }

    /// Bytes that one token takes in all layers.
    public long kvBytesPerToken(Dtype dtype) {
        return shape(1, dtype).bytes();
    }

    /// Floating-point operations of prefilling several prefixes from their first token on.
    ///
    /// @param tokens sum of their lengths
    /// @param squaredTokens sum of the squares of their lengths, since attention looks back from each token
    public double prefillFlopsOfPrefixes(double tokens, double squaredTokens) {
        return 2 * activeParameters() * tokens + attentionFlopsPerPair() * squaredTokens / 2;
    }

    /// Floating-point operations of computing the tokens at positions `[fromToken, toToken)`, the KV of those
    /// before being there.
    public double prefillFlops(long fromToken, long toToken) {
        new ValueRange("fromToken", 0, toToken).check(fromToken);
        double tokens = toToken - fromToken;
        double meanPosition = (fromToken + toToken) / 2.0;
        return tokens * (2 * activeParameters + attentionFlopsPerPair() * meanPosition);
    }

    private double attentionFlopsPerPair() {
        return 4.0 * attentionHeads * attentionDim * layers;
    }
}
