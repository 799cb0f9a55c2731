package io.kvcache.engines.cli;

import io.kvcache.engines.llamacpp.LlamaOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The options that name an engine and its model.
final class EngineOptions {

    @Spec(Spec.Target.MIXEE)
    private CommandSpec command = CommandSpec.create();

    @Option(
            names = "--engine",
            paramLabel = "ENGINE",
            defaultValue = "jlama",
            description = "jlama or llamacpp. Default: ${DEFAULT-VALUE}.")
    private String engine = "";

    @Option(
            names = "--model",
            paramLabel = "PATH",
            description = "For jlama a directory with config.json, tokenizer.json and *.safetensors; for llamacpp a"
                    + " GGUF file. Default: a small model of random weights, whose answers have no meaning.")
    private @Nullable Path model;

    @Option(
            names = "--library",
            paramLabel = "FILE",
            description = "For llamacpp: llama.cpp's library of build b4916, such as libllama.so."
                    + " Default: the one in de.kherud:llama, where that is on the class path.")
    private @Nullable Path library;

    @Option(
            names = "--context",
            paramLabel = "N",
            description = "For llamacpp: tokens that a prompt and its answer may have; memory is taken for all of them."
                    + " Default: the model's.")
    private @Nullable Integer context;

    /// The engine that the user named.
    ///
    /// @throws ParameterException when there is none of that name, or it does not take another of the options
    EngineKind kind() {
        EngineKind kind = EngineKind.of(engine)
                .orElseThrow(
                        () -> parameterError("--engine is '" + engine + "', must be: " + EngineKind.optionNames()));
        if (kind == EngineKind.JLAMA) {
            require(library == null, "--library is for --engine llamacpp");
            require(context == null, "--context is for --engine llamacpp");
        }
        require(
                context == null || (context >= 1 && context <= LlamaOptions.MAX_CONTEXT_TOKENS),
                "--context is " + context + ", must be: 1 to " + LlamaOptions.MAX_CONTEXT_TOKENS);
        return kind;
    }

    /// Loads the model. The caller closes it.
    ///
    /// @throws IOException that says what is wrong with the model or the library
    TextEngine open() throws IOException {
        return kind().open(Optional.ofNullable(model), Optional.ofNullable(library), context == null ? 0 : context);
    }

    private void require(boolean right, String message) {
        if (!right) {
            throw parameterError(message);
        }
    }

    private ParameterException parameterError(String text) {
        return new ParameterException(command.commandLine(), command.qualifiedName() + ": " + text);
    }
}
