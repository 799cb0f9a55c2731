package io.kvcache.server.config;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// Where it is written what a server is used for.
///
/// @param file beside which the one of the run before is kept; null for nowhere
/// @param bytes that it may have at most
public record TraceConfig(@Nullable Path file, long bytes) {

    private static final long MIN_BYTES = 4096;

    public TraceConfig {
        if (bytes < MIN_BYTES) {
            throw new IllegalArgumentException("trace.bytes is " + bytes + "; it takes " + MIN_BYTES + " and up");
        }
    }

    /// Nowhere; where it is on, a gibibyte.
    public static TraceConfig defaults() {
        return new TraceConfig(null, 1L << 30);
    }

    static TraceConfig read(Settings from, TraceConfig defaultValue) {
        String out = from.get("trace.out", "", text -> text);
        long bytes = from.get("trace.bytes", defaultValue.bytes(), SettingParsers::parseBytes);
        return from.getValid(defaultValue, () -> new TraceConfig(out.isEmpty() ? null : file(out), bytes));
    }

    private static Path file(String out) {
        try {
            return Path.of(out);
        } catch (InvalidPathException not) {
            throw new IllegalArgumentException(
                    "trace.out is '" + out + "'; it takes the name of a file: " + not.getMessage(), not);
        }
    }
}
