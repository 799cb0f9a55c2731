package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.DType;

/// How a model is loaded.
///
/// @param workingType type of activations, and of keys and values: F32 or BF16
/// @param quantizedType type that activations are quantised to for products with quantised weights, as Jlama
///     takes it
/// @param threads that compute, 1 to 1,024, for the whole JVM, where the first model decides: Jlama has
///     one pool
public record JlamaOptions(DType workingType, DType quantizedType, int threads) {

    private static final int MAX_THREADS = 1024;

    public JlamaOptions {
        if (workingType != DType.F32 && workingType != DType.BF16) {
            throw new IllegalArgumentException(
                    "working is " + workingType + "; Jlama keeps keys and values in F32 or BF16");
        }
        if (threads < 1 || threads > MAX_THREADS) {
            throw new IllegalArgumentException("threads is " + threads + "; allowed: 1 to " + MAX_THREADS);
        }
    }

    /// F32 for keys and values, I8 where weights are quantised, a thread for each processor.
    public static JlamaOptions defaults() {
        return new JlamaOptions(DType.F32, DType.I8, Runtime.getRuntime().availableProcessors());
    }
}
