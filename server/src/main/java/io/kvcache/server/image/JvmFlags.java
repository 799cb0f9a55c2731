package io.kvcache.server.image;

import io.kvcache.server.config.HostResources;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// The flags of the JVM that runs a command, as `.mvn/java-flags.sh` has them for checkouts.
///
/// Host memory is mapped, not heap: 2 GiB are for metadata, as much again for the buffers of the network; in a
/// container
/// of less than 8 GiB, a quarter of it each.
final class JvmFlags {

    private static final long MEBIBYTE = 1L << 20;
    private static final long MOST_MEBIBYTES = 2048;
    private static final long LEAST_MEBIBYTES = 128;

    private JvmFlags() {}

    /// @param command `serve` or another one
    /// @param environment of which `KVCACHE_JAVA_OPTS` is added
    static List<String> of(String command, HostResources host, Map<String, String> environment) {
        long mebibytes = Math.clamp(host.memoryBytes() / 4 / MEBIBYTE, LEAST_MEBIBYTES, MOST_MEBIBYTES);
        List<String> flags = new ArrayList<>(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-Xmx" + mebibytes + "m",
                "-XX:MaxDirectMemorySize=" + mebibytes + "m",
                "-XX:+UseCompactObjectHeaders",
                "--add-exports",
                "java.base/jdk.internal.misc=ALL-UNNAMED"));
        if (command.equals("serve")) {
            flags.add("-XX:+ExitOnOutOfMemoryError");
        }
        String own = environment.getOrDefault("KVCACHE_JAVA_OPTS", "").strip();
        if (!own.isEmpty()) {
            flags.addAll(List.of(own.split("\\s+")));
        }
        return flags;
    }
}
