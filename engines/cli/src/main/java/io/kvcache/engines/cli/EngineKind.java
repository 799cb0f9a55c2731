package io.kvcache.engines.cli;

import io.kvcache.engines.cli.TextEngine.JlamaTextEngine;
import io.kvcache.engines.cli.TextEngine.LlamaTextEngine;
import io.kvcache.engines.llamacpp.LlamaLibrary;
import io.kvcache.engines.llamacpp.LlamaOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// The engines that there are adapters for.
enum EngineKind {
    /// In Java, in this JVM.
    JLAMA("jlama", "Jlama"),
    /// In C++, in this process.
    LLAMACPP("llamacpp", "llama.cpp");

    private final String option;
    private final String title;

    EngineKind(String option, String title) {
        this.option = option;
        this.title = title;
    }

    /// The engine that a user names.
    public static Optional<EngineKind> of(String option) {
        return Arrays.stream(values())
                .filter(kind -> kind.option.equals(option))
                .findFirst();
    }

    /// Returns the names that a user may give.
    public static String optionNames() {
        return Arrays.stream(values()).map(EngineKind::option).collect(Collectors.joining(", "));
    }

    /// Returns the name that a user gives.
    public String option() {
        return option;
    }

    /// Returns the engine's own name.
    public String title() {
        return title;
    }

    /// Returns whether its libraries are on the class path.
    public boolean isAvailable() {
        return switch (this) {
            case JLAMA -> true;
            case LLAMACPP -> LlamaLibrary.isBundled();
        };
    }

    /// The engine with a model of random weights, of 25 million parameters.
    ///
    /// @throws IOException when the disk has no room for the model, or the library is missing
    public TextEngine openRandom() throws IOException {
        return switch (this) {
            case JLAMA -> JlamaTextEngine.open(Optional.empty());
            case LLAMACPP -> LlamaTextEngine.open(Optional.empty(), LlamaOptions.defaults(), Optional.empty());
        };
    }

    /// The engine for what a user gave.
    ///
    /// @param model Jlama's directory, llama.cpp's file; none makes a model of random weights
    /// @param library of llama.cpp; none takes the one of the class path
    /// @param contextTokens that a sequence may have in llama.cpp, 0 for the model's own
    /// @throws IOException when it cannot be read, or takes no text
    public TextEngine open(Optional<Path> model, Optional<Path> library, int contextTokens) throws IOException {
        return switch (this) {
            case JLAMA -> JlamaTextEngine.open(model);
            case LLAMACPP ->
                LlamaTextEngine.open(model, LlamaOptions.defaults().withContextTokens(contextTokens), library);
        };
    }
}
