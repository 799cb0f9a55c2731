package io.kvcache.engines.llamacpp;

/// How a model is loaded.
///
/// @param contextTokens that a sequence may have, 0 for as many as the model was trained with, at most
///     1,048,576; llama.cpp takes memory for all of them at once
/// @param threads that compute, 1 to 512
/// @param flashAttention whether llama.cpp computes attention in one pass; values then lie token by token,
///     so that blocks go in and out in fewer and larger pieces
public record ModelOptions(int contextTokens, int threads, boolean flashAttention) {

    private static final int MOST_TOKENS = 1 << 20;
    private static final int MOST_THREADS = 512;

    public ModelOptions {
        if (contextTokens < 0 || contextTokens > MOST_TOKENS) {
            throw new IllegalArgumentException(
                    "contextTokens is " + contextTokens + "; allowed: 0 (the model's) to " + MOST_TOKENS);
        }
        if (threads < 1 || threads > MOST_THREADS) {
            throw new IllegalArgumentException("threads is " + threads + "; allowed: 1 to " + MOST_THREADS);
        }
    }

    /// The model's context, a thread for every second processor, attention as llama.cpp does it by default.
    /// Threads spin while they wait for each other, so one too many takes longer than one too few.
    public static ModelOptions defaults() {
        int half = Runtime.getRuntime().availableProcessors() / 2;
        return new ModelOptions(0, Math.clamp(half, 1, MOST_THREADS), false);
    }

    /// Another number of threads.
    public ModelOptions withThreads(int count) {
        return new ModelOptions(contextTokens, count, flashAttention);
    }

    /// With flash attention or without.
    public ModelOptions withFlashAttention(boolean wanted) {
        return new ModelOptions(contextTokens, threads, wanted);
    }
}
