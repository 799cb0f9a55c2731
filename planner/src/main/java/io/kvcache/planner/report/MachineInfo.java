package io.kvcache.planner.report;

import io.kvcache.server.doctor.ProcessRunner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/// The machine and the software of a measurement, as text beside its figures.
///
/// @param hardware processor, cores and memory
/// @param software kernel and JVM
/// @param load of the last minute, as the kernel counts it
/// @param commit of the working tree, with a plus when it has changes
public record MachineInfo(String hardware, String software, String load, String commit) {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    /// This machine, now.
    public static MachineInfo current() {
        String cpu = lineAfter("/proc/cpuinfo", "model name");
        String memory = lineAfter("/proc/meminfo", "MemTotal");
        return new MachineInfo(
                cpu + ", " + Runtime.getRuntime().availableProcessors() + " cores, " + memory,
                System.getProperty("os.name") + " " + System.getProperty("os.version") + ", JDK "
                        + System.getProperty("java.runtime.version"),
                firstWord(read("/proc/loadavg")),
                currentCommit());
    }

    /// Returns the commit of the checkout that this build lies in, with a plus when the checkout has changes;
    /// an empty text where it lies in none.
    public static String currentCommit() {
        String build = buildFolder();
        String commit = output("git", "-C", build, "rev-parse", "--short=12", "HEAD");
        return commit.isEmpty()
                        || output("git", "-C", build, "status", "--porcelain", "--untracked-files=no")
                                .isEmpty()
                ? commit
                : commit + "+";
    }

    /// The folder of this class's jar, or of its classes.
    private static String buildFolder() {
        try {
            Path place = Path.of(MachineInfo.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toURI());
            return String.valueOf(place.getParent());
        } catch (URISyntaxException unusable) {
            throw new IllegalStateException("the build lies at no path", unusable);
        }
    }

    private static String lineAfter(String file, String key) {
        return read(file)
                .lines()
                .filter(line -> line.startsWith(key))
                .findFirst()
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .orElse("unknown");
    }

    private static String firstWord(String text) {
        return text.isEmpty() ? "unknown" : text.substring(0, text.indexOf(' '));
    }

    private static String read(String file) {
        try {
            return Files.exists(Path.of(file)) ? Files.readString(Path.of(file)) : "";
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /// Returns the output of a command, or an empty text if it cannot run.
    private static String output(String... command) {
        try {
            ProcessRunner.ProcessOutput output = ProcessRunner.run(TIMEOUT, List.of(command));
            return output.isSuccessful() ? output.text().strip() : "";
        } catch (IOException absent) {
            return "";
        }
    }
}
