package io.kvcache.bench.cli;

import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache config`: what a server would run with.
@Command(
        name = "config",
        description = "Check a server's settings: config check --config kvcache.yaml.",
        mixinStandardHelpOptions = true,
        subcommands = ConfigCommand.Check.class)
final class ConfigCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache config: what? There is check");
    }

    /// `kvcache config check`: says what is wrong, all of it, or that nothing is.
    @Command(
            name = "check",
            description = "Read file, environment and options as serve would, and say what is wrong.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Check implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ServerSettings settings = new ServerSettings();

        @Override
        public Integer call() throws IOException {
            try {
                ServerConfig config = settings.read();
                spec.commandLine()
                        .getOut()
                        .println("good: listens at " + config.listen().address() + ":"
                                + config.listen().port() + ", "
                                + new ByteSize(config.memory().hostBytes()) + " of host memory, "
                                + config.network().loops() + " loops");
                return 0;
            } catch (ConfigException wrong) {
                wrong.problems().forEach(spec.commandLine().getErr()::println);
                return 1;
            } finally {
                spec.commandLine().getOut().flush();
                spec.commandLine().getErr().flush();
            }
        }
    }
}
