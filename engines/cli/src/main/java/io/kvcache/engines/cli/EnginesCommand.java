package io.kvcache.engines.cli;

import io.kvcache.bench.cli.FigureOptions;
import io.kvcache.bench.figure.Suite;
import io.kvcache.engines.cli.EngineDemo.EngineDemoReport;
import java.io.IOException;
import java.util.concurrent.Callable;
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

        @Mixin
        private final EngineOptions options = new EngineOptions();

        @Option(names = "--json", description = "Print one JSON object instead of text.")
        private boolean json;

        @Override
        public Integer call() throws IOException, InterruptedException {
            EngineKind kind = options.kind();
            try (TextEngine engine = options.open()) {
                return new EngineDemoReport(spec.commandLine().getOut(), json).show(kind, engine);
            } catch (IllegalArgumentException refused) {
                // Such as a context in which the demo's prompts have no room.
                throw new ParameterException(
                        spec.commandLine(), "kvcache engines demo: " + refused.getMessage(), refused);
            }
        }
    }

    /// `kvcache engines bench`: what the store saves an inference engine, as figures beside their budgets.
    @Command(
            name = "bench",
            description = "Measure inference engines with the store and without against the budgets.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class EngineBenchCommand implements Callable<Integer> {

        @Option(names = "--filter", paramLabel = "TEXT", description = "Only figures with this in their name.")
        private String filter = "";

        @Mixin
        private final FigureOptions options = new FigureOptions();

        @Option(names = "--list", description = "Print the figures and their budgets, and measure nothing.")
        private boolean listed;

        @Override
        public Integer call() throws IOException, InterruptedException {
            Suite suite = EngineSuite.suite();
            if (!filter.isEmpty()) {
                options.checkFilter(suite, filter);
            }
            if (listed) {
                options.printBudgets(suite.name(), suite.title());
                return 0;
            }
            Suite.Run run = Suite.Run.of(options.isQuick(), filter, options::printProgress);
            return options.print(
                    suite.name(), suite.title(), suite.measurement().measure(run));
        }
    }
}
