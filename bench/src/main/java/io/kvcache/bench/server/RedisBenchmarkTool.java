package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/// Runs Debian's redis-benchmark.
final class RedisBenchmarkTool {

    /// Bytes of values that one run moves: a second or less.
    private static final long RUN_BYTES = 1L << 30;

    /// Of the largest values, which take more bytes then.
    private static final long MIN_REQUESTS = 32;
    private static final long MAX_SECONDS = 60;

    private RedisBenchmarkTool() {}

    /// Requests a second of a load.
    ///
    /// @throws IOException when it is not installed, does not end, or prints something else than is known
    static double requestsPerSecond(ServerLoadSpec load, int port) throws IOException, InterruptedException {
        String test = load.write() ? "set" : "get";
        Process process = new ProcessBuilder(List.of(
                        "redis-benchmark",
                        "-p",
                        Integer.toString(port),
                        "-t",
                        test,
                        "-d",
                        Integer.toString(load.bytes()),
                        "-r",
                        Integer.toString(load.keyCount()),
                        "-c",
                        Integer.toString(load.connections()),
                        "-n",
                        Long.toString(Math.max(MIN_REQUESTS, RUN_BYTES / load.bytes())),
                        "--csv"))
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        if (!process.waitFor(MAX_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new IOException("redis-benchmark did not end within " + MAX_SECONDS + " s");
        }
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        String wanted = '"' + test.toUpperCase(Locale.ROOT) + '"';
        for (String line : text.split("\n", -1)) {
            String[] fields = line.split(",", -1);
            if (fields.length > 1 && fields[0].equals(wanted)) {
                return Double.parseDouble(fields[1].replace("\"", ""));
            }
        }
        throw new IOException("redis-benchmark printed no line for " + test + ": " + text);
    }
}
