package io.kvcache.server.cli;

import io.kvcache.core.KvCache;
import picocli.CommandLine;

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
}
