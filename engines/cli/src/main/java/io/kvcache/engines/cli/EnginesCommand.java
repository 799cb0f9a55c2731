package io.kvcache.engines.cli;

import io.kvcache.bench.cli.SuiteOptions;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.engines.cli.EngineDemo.EngineDemoReport;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache engines`: what inference engines gain from a store before their prefill.
@Command(
        name = "engines",
        description = "Ask inference engines with a store and without: demo shows it, bench measures it.",
        mixinStandardHelpOptions = true,
        subcommands = {EnginesCommand.EngineDemoCommand.class, EnginesCommand.EngineBenchCommand.class})
final class EnginesCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache engines: it takes a command, demo or bench");
    }

    /// `kvcache engines demo`: an inference engine in this JVM, each request with the store and without.
    @Command(
            name = "demo",
            description =
                    "Ask an inference engine in this JVM 20 questions under one system prompt, and a chat of 6 turns,"
                            + " with the store and without.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class EngineDemoCommand implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Option(
                names = "--engine",
                paramLabel = "ENGINE",
                defaultValue = "jlama",
                description = "jlama or llamacpp. Default: ${DEFAULT-VALUE}.")
        private String engine = "";

        @Option(
                names = "--model",
                paramLabel = "DIR",
                description = "For --engine jlama: a model's directory (config.json, tokenizer.json, *.safetensors)."
                        + " Default: a small one of random weights, made for this.")
        private @Nullable Path model;

        @Option(
                names = "--library",
                paramLabel = "FILE",
                description = "For --engine llamacpp: llama.cpp's library of build b4916, such as libllama.so."
                        + " Default: the one in de.kherud:llama, where that is on the class path.")
        private @Nullable Path library;

        @Option(names = "--json", description = "Print one JSON object instead of text.")
        private boolean json;

        @Override
        public Integer call() throws IOException, InterruptedException {
            EngineKind kind = EngineKind.of(engine)
                    .orElseThrow(() ->
                            parameterError("--engine is '" + engine + "', must be: " + EngineKind.optionNames(), null));
            try {
                return new EngineDemoReport(spec.commandLine().getOut(), json)
                        .show(kind, Optional.ofNullable(model), Optional.ofNullable(library));
            } catch (IllegalArgumentException refused) {
                throw parameterError(String.valueOf(refused.getMessage()), refused);
            }
        }

        private ParameterException parameterError(String text, @Nullable Throwable cause) {
            return new ParameterException(spec.commandLine(), "kvcache engines demo: " + text, cause);
        }
    }

    /// `kvcache engines bench`: what the store saves an inference engine, as figures beside their budgets.
    @Command(
            name = "bench",
            description = "Measure inference engines with the store and without against the budgets.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class EngineBenchCommand implements Callable<Integer> {

        @Option(names = "--filter", paramLabel = "TEXT", description = "Only questions with this in their name.")
        private String filter = "";

        @Mixin
        private final SuiteOptions options = new SuiteOptions();

        @Option(names = "--list", description = "Print the questions and their budgets, and measure nothing.")
        private boolean listed;

        @Override
        public Integer call() throws IOException {
            BenchmarkSuite chosen = options.filterSuite(EngineSuite.suite(), filter);
            if (listed) {
                options.printSpecs(chosen);
                return 0;
            }
            return options.reportResults(chosen, options.createRunner().run(chosen));
        }
    }
}
