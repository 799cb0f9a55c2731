package io.kvcache.server.cli;

import io.kvcache.server.ServerPreflight;
import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.MemoryBudget;
import io.kvcache.server.config.MemoryBudget.CgroupMemoryLimit;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.SettingsReference;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache config`: what a server would run with.
@Command(
        name = "config",
        description = "Check a server's settings, list all that there are, or hash a password.",
        mixinStandardHelpOptions = true,
        subcommands = {ConfigCommand.Check.class, ConfigCommand.ListSettings.class, ConfigCommand.HashPassword.class})
final class ConfigCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "kvcache config takes a subcommand: check, settings or hash-password");
    }

    /// `kvcache config settings`: the reference of all settings.
    @Command(
            name = "settings",
            description = "List every setting with its format, default and meaning, as Markdown.",
            mixinStandardHelpOptions = true)
    static final class ListSettings implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Override
        public Integer call() {
            spec.commandLine().getOut().print(SettingsReference.toMarkdown());
            spec.commandLine().getOut().flush();
            return 0;
        }
    }

    /// `kvcache config check`: says what is wrong, all of it, or that nothing is.
    @Command(
            name = "check",
            description = "Read file, environment and options as serve would, and print all problems.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Check implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ServeOptions settings = new ServeOptions();

        @Option(
                names = "--no-files",
                description =
                        "Do not read files of passwords, secrets, salts and certificates, nor look at directories of disks"
                                + " and shared memory.")
        private boolean noFiles;

        @Override
        public Integer call() throws IOException {
            try {
                ServerConfig config = settings.read();
                CgroupMemoryLimit limit = CgroupMemoryLimit.detect();
                MemoryBudget budget = ServerPreflight.memoryBudget(config);
                budget.requireWithin(limit);
                List<String> unusable = noFiles ? List.of() : findProblems(config);
                if (!unusable.isEmpty()) {
                    unusable.stream()
                            .map(settings::withOrigin)
                            .forEach(spec.commandLine().getErr()::println);
                    return 1;
                }
                if (!noFiles) {
                    ServerPreflight.findMissingDirectories(config).stream()
                            .map(settings::withOrigin)
                            .forEach(missing -> spec.commandLine().getErr().println("warning: " + missing));
                }
                ServerPreflight.findWarnings(config).stream()
                        .map(settings::withOrigin)
                        .forEach(warning -> spec.commandLine().getErr().println("warning: " + warning));
                ConfigSummary.lines(config).forEach(spec.commandLine().getOut()::println);
                spec.commandLine().getOut().println(budget.describe(limit));
                return 0;
            } catch (IllegalStateException tooMuch) {
                spec.commandLine().getErr().println(tooMuch.getMessage());
                return 1;
            } catch (ConfigException wrong) {
                wrong.problems().forEach(spec.commandLine().getErr()::println);
                List<String> unusable = noFiles ? List.of() : findProblems(wrong.readable());
                unusable.stream()
                        .map(settings::withOrigin)
                        .forEach(spec.commandLine().getErr()::println);
                return 2;
            } finally {
                spec.commandLine().getOut().flush();
                spec.commandLine().getErr().flush();
            }
        }
    }

    private static List<String> findProblems(ServerConfig config) {
        List<String> unusable = new ArrayList<>(ServerPreflight.findFileProblems(config));
        unusable.addAll(ServerPreflight.findStorageProblems(config));
        return unusable;
    }

    /// `kvcache config hash-password`: what is kept of a password.
    @Command(
            name = "hash-password",
            description =
                    "Read a password from standard input and print its hash for password_hash or a password_file.",
            mixinStandardHelpOptions = true)
    static final class HashPassword implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Override
        public Integer call() throws IOException {
            String password = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
            if (password == null || password.isEmpty()) {
                spec.commandLine().getErr().println("kvcache config hash-password: a password is expected on a line");
                spec.commandLine().getErr().flush();
                return 1;
            }
            spec.commandLine()
                    .getOut()
                    .println(PasswordHash.of(password, PasswordHash.DEFAULT_ITERATIONS, new SecureRandom()));
            spec.commandLine().getOut().flush();
            return 0;
        }
    }
}
