package io.kvcache.server.config;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The time that engines need to compute KV. Look-ups leave out values on disk that an engine computes sooner than
/// the disk reads them.
///
/// @param cost of computing; null for clients that are told of everything
/// @param chunkTokens tokens that LMCache keeps under one key
/// @param deadline longest that reading what one look-up finds may take
public record RecomputeConfig(@Nullable PrefillCost cost, int chunkTokens, Duration deadline) {

    private static final int MAX_CHUNK_TOKENS = 1 << 20;
    private static final Duration MAX_DEADLINE = Duration.ofMinutes(1);
    private static final String DEADLINE_RANGE = "1ms to 60s";

    public RecomputeConfig {
        if (chunkTokens < 1 || chunkTokens > MAX_CHUNK_TOKENS) {
            throw new IllegalArgumentException(
                    "prefill.chunk_tokens is " + chunkTokens + "; it takes 1 to " + MAX_CHUNK_TOKENS);
        }
        if (!deadline.isPositive() || deadline.compareTo(MAX_DEADLINE) > 0) {
            throw new IllegalArgumentException(
                    "prefill.deadline is " + deadline.toMillis() + "ms; it takes " + DEADLINE_RANGE);
        }
    }

    /// No costs known. If they are set: LMCache's usual chunks, and five seconds.
    public static RecomputeConfig defaults() {
        return new RecomputeConfig(null, 256, Duration.ofSeconds(5));
    }

    static RecomputeConfig read(Settings from, RecomputeConfig defaultValue) {
        double rate = from.get("prefill.tokens_per_second", 0.0, RecomputeConfig::positiveNumber);
        Optional<ModelPreset> none = Optional.empty();
        ModelPreset model =
                from.get("prefill.model", none, RecomputeConfig::model).orElse(null);
        double flops = from.get("prefill.flops", 0.0, RecomputeConfig::positiveNumber);
        int tokens = from.integer("prefill.chunk_tokens", defaultValue.chunkTokens, 1, MAX_CHUNK_TOKENS);
        Duration deadline = from.duration("prefill.deadline", defaultValue.deadline, DEADLINE_RANGE);
        return from.getValid(defaultValue, () -> {
            PrefillCost cost = cost(rate, model, flops);
            for (String idle : List.of("prefill.chunk_tokens", "prefill.deadline")) {
                if (cost == null && from.isSet(idle)) {
                    throw new IllegalArgumentException(
                            idle + " does nothing without prefill.tokens_per_second, or prefill.model with flops");
                }
            }
            return new RecomputeConfig(cost, tokens, deadline);
        });
    }

    private static @Nullable PrefillCost cost(double rate, @Nullable ModelPreset model, double flops) {
        if ((model == null) != (flops == 0) || (rate != 0 && model != null)) {
            throw new IllegalArgumentException(
                    "prefill takes tokens_per_second, or model with flops, and not more of them");
        }
        if (model != null) {
            return PrefillCost.of(model, flops);
        }
        return rate == 0 ? null : PrefillCost.ofTokenRate(rate);
    }

    private static double positiveNumber(String text) {
        try {
            double number = Double.parseDouble(text.strip());
            if (number > 0 && number < Double.POSITIVE_INFINITY) {
                return number;
            }
        } catch (NumberFormatException notOne) {
            // Said below.
        }
        throw new IllegalArgumentException("it takes a number above 0, as 20000 or 5e14");
    }

    private static Optional<ModelPreset> model(String text) {
        Optional<ModelPreset> named = ModelPreset.fromName(text.strip());
        if (named.isEmpty()) {
            throw new IllegalArgumentException("it takes "
                    + Arrays.stream(ModelPreset.values())
                            .map(ModelPreset::label)
                            .collect(Collectors.joining(", ")));
        }
        return named;
    }
}
