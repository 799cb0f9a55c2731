package io.kvcache.engines.llamacpp;

/// How a model is loaded.
///
/// @param contextTokens that a sequence may have, 0 for as many as the model was trained with, at most
///     1,048,576; llama.cpp takes memory for all of them at once
/// @param threads that compute, 1 to 512
/// @param flashAttention whether llama.cpp computes attention in one pass; values then lie token by token,
///     so that blocks go in and out in fewer and larger pieces
public record LlamaOptions(int contextTokens, int threads, boolean flashAttention) {

    /// Most tokens that a sequence may have.
    public static final int MAX_CONTEXT_TOKENS = 1 << 20;

    private static final int MAX_THREADS = 512;

    public LlamaOptions {
        if (contextTokens < 0 || contextTokens > MAX_CONTEXT_TOKENS) {
            throw new IllegalArgumentException(
                    "contextTokens is " + contextTokens + "; allowed: 0 (the model's) to " + MAX_CONTEXT_TOKENS);
        }
        if (threads < 1 || threads > MAX_THREADS) {
            throw new IllegalArgumentException("threads is " + threads + "; allowed: 1 to " + MAX_THREADS);
        }
    }

    /// The model's context, a thread for every second processor, attention as llama.cpp does it by default.
    /// Threads spin while they wait for each other, so one too many takes longer than one too few.
    public static LlamaOptions defaults() {
        int half = Runtime.getRuntime().availableProcessors() / 2;
        return new LlamaOptions(0, Math.clamp(half, 1, MAX_THREADS), false);
    }

    /// Another number of tokens that a sequence may have.
    public LlamaOptions withContextTokens(int count) {
        return new LlamaOptions(count, threads, flashAttention);
    }

    /// Another number of threads.
    public LlamaOptions withThreads(int count) {
        return new LlamaOptions(contextTokens, count, flashAttention);
    }

    /// With flash attention or without.
    public LlamaOptions withFlashAttention(boolean wanted) {
        return new LlamaOptions(contextTokens, threads, wanted);
    }
}
