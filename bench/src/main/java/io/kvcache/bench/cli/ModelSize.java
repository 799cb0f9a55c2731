package io.kvcache.bench.cli;

import io.kvcache.bench.trace.Trace;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// How much KV a model makes: what it takes to say a capacity in bytes.
///
/// @param name on the command line
/// @param bytesPerToken of K and V in all layers, 16-bit
record ModelSize(String name, long bytesPerToken) {

    /// 2 · layers · kvHeads · headDim · 2 bytes; DeepSeek-V3 keeps 512 + 64 compressed values a layer.
    private static final List<ModelSize> ALL = List.of(
            new ModelSize("llama-3-8b", 2 * 32 * 8 * 128 * 2),
            new ModelSize("llama-3-70b", 2 * 80 * 8 * 128 * 2),
            new ModelSize("qwen3-32b", 2 * 64 * 8 * 128 * 2),
            new ModelSize("deepseek-v3", 61 * (512 + 64) * 2));

    static Optional<ModelSize> named(String name) {
        return ALL.stream().filter(model -> model.name.equals(name)).findFirst();
    }

    static String names() {
        return ALL.stream().map(ModelSize::name).collect(Collectors.joining(", "));
    }

    /// Bytes of one block of a trace.
    long blockBytes() {
        return bytesPerToken * Trace.BLOCK_TOKENS;
    }
}
