package io.kvcache.engines.generator;

import java.util.Set;

/// A request to generate tokens.
///
/// @param prompt tokens, at least one; not copied, so leave it as it is
/// @param maxTokens to generate, at least 1; the model's context may end earlier
/// @param temperature 0 takes the likeliest token, 1 what the model says, at most 10
/// @param seed decides what is drawn at a temperature above 0
/// @param stops tokens that end the text and do not belong to it
/// @param useCache whether the store is asked for the prompt's beginning and given what was computed
@SuppressWarnings("ArrayRecordComponent")
public record GenerationRequest(
        int[] prompt, int maxTokens, float temperature, long seed, Set<Integer> stops, boolean useCache) {

    private static final float MAX_TEMPERATURE = 10;

    public GenerationRequest {
        if (prompt.length == 0) {
            throw new IllegalArgumentException("the prompt has 0 tokens; it takes at least 1");
        }
        if (maxTokens < 1) {
            throw new IllegalArgumentException("maxTokens is " + maxTokens + "; it takes at least 1");
        }
        if (!(temperature >= 0 && temperature <= MAX_TEMPERATURE)) {
            throw new IllegalArgumentException("temperature is " + temperature + "; allowed: 0 to " + MAX_TEMPERATURE);
        }
        stops = Set.copyOf(stops);
    }

    /// The likeliest tokens, as many as are asked for, whatever they are.
    public static GenerationRequest greedy(int[] prompt, int maxTokens) {
        return new GenerationRequest(prompt, maxTokens, 0, 0, Set.of(), true);
    }

    /// The same, with nothing looked up and nothing kept.
    public GenerationRequest uncached() {
        return new GenerationRequest(prompt, maxTokens, temperature, seed, stops, false);
    }
}
