package io.kvcache.server.cli;

import io.kvcache.core.KvCache;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// The version of this build.
public final class Version implements CommandLine.IVersionProvider {

    /// For picocli.
    public Version() {}

    /// Returns the version in the jar's manifest, or `(development)` where classes are not in a jar.
    public static String text() {
        String version = KvCache.class.getPackage().getImplementationVersion();
        return version == null ? "(development)" : version;
    }

    @Override
    public String[] getVersion() {
        return new String[] {"kvcache " + text()};
    }

    /// `kvcache version`, the same as `kvcache --version`.
    @Command(name = "version", description = "Show the version.", mixinStandardHelpOptions = true)
    static final class VersionCommand implements Runnable {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Override
        public void run() {
            spec.root().commandLine().printVersionHelp(spec.commandLine().getOut());
            spec.commandLine().getOut().flush();
        }
    }
}
