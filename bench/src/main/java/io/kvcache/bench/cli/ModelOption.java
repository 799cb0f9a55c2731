package io.kvcache.bench.cli;

import io.kvcache.core.identity.ModelPreset;
import picocli.CommandLine.Option;

/// The option that names the model whose KV is counted.
final class ModelOption {

    @Option(
            names = "--model",
            paramLabel = "NAME",
            defaultValue = "llama-3-8b",
            description = "Whose prefill and KV: llama-3-8b, llama-3-70b, qwen3-32b, deepseek-v3."
                    + " Default: ${DEFAULT-VALUE}.")
    private String name = "";

    /// @throws IllegalArgumentException that says what may be
    ModelPreset preset() {
        return ReplayOptions.model(name, true).orElseThrow();
    }
}
