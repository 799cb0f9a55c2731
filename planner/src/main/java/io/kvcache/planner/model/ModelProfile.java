package io.kvcache.planner.model;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.ModelPreset;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/// What a model stores for a token and for a sequence, and what its prefill costs.
///
/// @param attention all layers that store KV
/// @param kvDtype of the KV
/// @param stateBytes recurrent states of one sequence in all layers, 0 where there are none
/// @param activeParameters that compute one token
/// @param weightBytes of all weights as they are published
public record ModelProfile(
        String label,
        List<AttentionLayers> attention,
        Dtype kvDtype,
        long stateBytes,
        double activeParameters,
        double weightBytes) {

    /// Copies the list.
    public ModelProfile {
        attention = List.copyOf(attention);
    }

    /// Layers that are alike.
    ///
    /// @param rowElements that a layer stores for a token; 0 for work that reads what other layers here store
    /// @param window tokens before the present one that a layer keeps; 0 where it keeps all
    /// @param flopsPerPair of one layer, for a token and one before it: `4·heads·dim` with separate K and V
    public record AttentionLayers(int count, long rowElements, int window, double flopsPerPair) {

        /// Layers that keep all tokens.
        static AttentionLayers full(int count, long rowElements, double flopsPerPair) {
            return new AttentionLayers(count, rowElements, 0, flopsPerPair);
        }

        /// Layers that keep the last tokens.
        static AttentionLayers sliding(int count, long rowElements, int window, double flopsPerPair) {
            return new AttentionLayers(count, rowElements, window, flopsPerPair);
        }

        /// Layers that keep the tokens since the last multiple of `window`: half of them on average.
        static AttentionLayers chunked(int count, long rowElements, int window, double flopsPerPair) {
            return new AttentionLayers(count, rowElements, window, flopsPerPair / 2);
        }

        private boolean hasWindow() {
            return window > 0;
        }
    }

    /// A preset of the store.
    ///
    /// @param weightBytes as published
    static ModelProfile of(ModelPreset preset, double weightBytes) {
        long rowElements = preset.kvBytesPerToken(Dtype.INT8) / preset.layers();
        return new ModelProfile(
                preset.label(),
                List.of(AttentionLayers.full(
                        preset.layers(), rowElements, preset.prefillFlopsOfPrefixes(0, 2) / preset.layers())),
                Dtype.BF16,
                0,
                preset.activeParameters(),
                weightBytes);
    }

    /// Bytes of a token in the layers that keep all tokens: those of a block are these times its tokens.
    public long kvBytesPerToken() {
        return attention.stream()
                        .filter(layers -> !layers.hasWindow())
                        .mapToLong(layers -> layers.count * layers.rowElements)
                        .sum()
                * kvDtype.bytes();
    }

    /// Bytes that layers with a window keep of one sequence, at most.
    public long windowBytes() {
        return attention.stream()
                        .filter(AttentionLayers::hasWindow)
                        .mapToLong(layers -> layers.count * layers.rowElements * layers.window)
                        .sum()
                * kvDtype.bytes();
    }

    /// The prefill cost.
    ///
    /// A layer with a window costs what its full window costs, also before that is full. What recurrent layers
    /// do with their state is left out; their weights are counted.
    ///
    /// @param flopsPerSecond floating-point operations that all devices together do in a second of prefill
    public PrefillCost prefillCost(double flopsPerSecond) {
        double windowFlops = sum(layers -> layers.hasWindow() ? layers.flopsPerPair * layers.window : 0);
        return new PrefillCost(
                (2 * activeParameters + windowFlops) / flopsPerSecond,
                sum(layers -> layers.hasWindow() ? 0 : layers.flopsPerPair) / flopsPerSecond);
    }

    private double sum(ToDoubleFunction<AttentionLayers> ofLayer) {
        return attention.stream()
                .mapToDouble(layers -> layers.count * ofLayer.applyAsDouble(layers))
                .sum();
    }

    /// The same model with KV of another type.
    public ModelProfile withKvDtype(Dtype dtype) {
        return new ModelProfile(label, attention, dtype, stateBytes, activeParameters, weightBytes);
    }

    /// The same prefill and weights, with so many bytes of KV a token and nothing else to keep.
    ///
    /// @param bytes above 0
    public ModelProfile withKvBytesPerToken(long bytes) {
        PrefillCost cost = prefillCost(1);
        return new ModelProfile(
                label + " with " + bytes + " bytes a token",
                List.of(AttentionLayers.full(1, bytes, cost.secondsPerPair())),
                Dtype.INT8,
                0,
                cost.secondsPerToken() / 2,
                weightBytes);
    }

    /// Returns a remark on what is kept beside the KV that grows with every token; empty if there is none.
    public Optional<String> sequenceRemark() {
        if (stateBytes + windowBytes() == 0) {
            return Optional.empty();
        }
        return Optional.of(String.format(
                Locale.ROOT,
                "%s: %,d bytes of KV a token (%s). Not counted is what it keeps once a sequence: %s",
                label,
                kvBytesPerToken(),
                kvDtype.name().toLowerCase(Locale.ROOT),
                sequenceParts()));
    }

    private String sequenceParts() {
        String windows = windowBytes() == 0
                ? ""
                : String.format(Locale.ROOT, "%.1f MiB of layers with a window", windowBytes() / 1048576.0);
        String states = stateBytes == 0
                ? ""
                : String.format(
                        Locale.ROOT,
                        "%.1f MiB of recurrent states (lab states finds where to keep them)",
                        stateBytes / 1048576.0);
        return windows + (windows.isEmpty() || states.isEmpty() ? "" : " and ") + states;
    }

    /// Returns what a `config.json` has given.
    String derivation() {
        return String.format(
                Locale.ROOT,
                "%s: %,d bytes of KV a token (%s), %.1f billion active parameters, %,.1f GB of weights",
                label,
                kvBytesPerToken(),
                kvDtype.name().toLowerCase(Locale.ROOT),
                activeParameters / 1e9,
                weightBytes / 1e9);
    }
}
