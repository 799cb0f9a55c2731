package io.kvcache.server.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// `kvcache version`, the same as `kvcache --version`.
@Command(name = "version", description = "Show the version.", mixinStandardHelpOptions = true)
final class VersionCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        spec.root().commandLine().printVersionHelp(spec.commandLine().getOut());
        spec.commandLine().getOut().flush();
    }
}
