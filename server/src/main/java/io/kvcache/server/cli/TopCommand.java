package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache top`: a server's statistics each second, or once.
@Command(name = "top", description = "Watch what a server does.", mixinStandardHelpOptions = true)
final class TopCommand implements Callable<Integer> {

    private static final long SECOND_MILLIS = 1000;

    /// Cursor home, clear to the end.
    private static final String CLEAR_SCREEN = "\033[H\033[2J";

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ConnectionOptions server = new ConnectionOptions();

    @Option(names = "--once", description = "Print it once and stop.")
    private boolean once;

    @Override
    public Integer call() throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        try (HttpApiClient client = server.httpClient()) {
            JsonNode before = null;
            long beforeNanos = System.nanoTime();
            while (true) {
                JsonNode now = client.get("/v1/stats");
                long nowNanos = System.nanoTime();
                out.print(once ? "" : CLEAR_SCREEN);
                out.print(formatTable(client.hostAndPort(), before, now, (nowNanos - beforeNanos) / 1e9));
                out.flush();
                if (once || !sleepOneSecond()) {
                    return 0;
                }
                before = now;
                beforeNanos = nowNanos;
            }
        }
    }

    private static String formatTable(String place, @Nullable JsonNode before, JsonNode now, double seconds) {
        return new TopTable(place, before, now, seconds).format();
    }

    private static boolean sleepOneSecond() {
        try {
            Thread.sleep(SECOND_MILLIS);
            return true;
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
