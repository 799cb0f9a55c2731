package io.kvcache.bench.cli;

import io.kvcache.bench.lab.EngineHardware;
import io.kvcache.bench.lab.GpuPreset;
import io.kvcache.core.identity.ModelPreset;
import java.util.Locale;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// The options that say what the model of an engine computes with.
final class EngineOptions {

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--gpu",
            paramLabel = "NAME",
            defaultValue = "h100",
            description = "What prefills: a100, h100, h200. Default: ${DEFAULT-VALUE}.")
    private String gpu = "";

    @Option(
            names = "--gpus",
            paramLabel = "N",
            defaultValue = "4",
            description = "How many of them together, at half their peak. Default: ${DEFAULT-VALUE}.")
    private int gpus;

    /// @throws IllegalArgumentException that says what may be
    ModelPreset preset() {
        return model.preset();
    }

    /// @throws IllegalArgumentException that says what may be
    EngineHardware hardware() {
        if (gpus < 1 || gpus > 1000) {
            throw ReplayOptions.invalidOption("--gpus", String.valueOf(gpus), "1 to 1000");
        }
        GpuPreset preset =
                GpuPreset.named(gpu).orElseThrow(() -> ReplayOptions.invalidOption("--gpu", gpu, GpuPreset.names()));
        return EngineHardware.of(preset, preset(), gpus);
    }

    /// `llama-3-8b on 4 h100`.
    String title() {
        return preset().label() + " on " + gpus + " " + gpu.toLowerCase(Locale.ROOT);
    }
}
