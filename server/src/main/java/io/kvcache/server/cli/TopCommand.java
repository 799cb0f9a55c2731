package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Formatter;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache top`: a server's statistics each second, or once.
@Command(name = "top", description = "Watch a server's statistics.", mixinStandardHelpOptions = true)
final class TopCommand implements Callable<Integer> {

    private static final long SECOND_MILLIS = 1000;

    /// Cursor home, clear to the end.
    private static final String CLEAR_SCREEN = "\033[H\033[2J";

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ConnectionOptions server = new ConnectionOptions();

    @Option(names = "--once", description = "Print them once and exit.")
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
                out.print(once || !ProgressLine.isOnTerminal() ? "" : CLEAR_SCREEN);
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

    /// A server's statistics as a table for a terminal.
    ///
    /// @param place host and port
    /// @param before the statistics some time before, or null; rates are of the time between
    /// @param seconds that time
    record TopTable(String place, @Nullable JsonNode before, JsonNode now, double seconds) {

        private static final double MIB = 1 << 20;

        String format() {
            StringBuilder text = new StringBuilder();
            Formatter out = new Formatter(text, Locale.ROOT);
            appendHeader(out);
            appendPolicy(out);
            appendMemory(out);
            appendRequests(out);
            appendTenants(out);
            appendNamespaces(out);
            appendDisks(out);
            return text.toString();
        }

        private void appendHeader(Formatter out) {
            JsonNode host = now.get("host");
            long held = host.get("heldBytes").longValue();
            long capacity = host.get("capacityBytes").longValue();
            out.format("kvcache %s at %s%n", now.get("version").stringValue(), place);
            out.format(
                    "memory %.0f of %.0f MiB (%d %%)   records %d of %d   connections %d   views %d%n",
                    held / MIB,
                    capacity / MIB,
                    100 * held / Math.max(1, capacity),
                    now.at("/records/live").longValue(),
                    now.at("/records/capacity").longValue(),
                    now.at("/connections/open").longValue(),
                    now.get("openViews").longValue());
            out.format(
                    "removed   evicted %d %s   dropped %d   replaced %d   quota %d   puts refused for room %d   declined %d%n",
                    number(now, "/removals/evicted"),
                    rate("/removals/evicted"),
                    number(now, "/removals/dropped"),
                    number(now, "/removals/replaced"),
                    number(now, "/removals/quota"),
                    number(now, "/puts/noRoom"),
                    number(now, "/puts/declined"));
        }

        /// Appends the order that a policy that learns goes by now. Appends nothing under other policies, and before
        /// the first use.
        private void appendPolicy(Formatter out) {
            if (number(now, "/policy/uses") == 0) {
                return;
            }
            long sampled = number(now, "/policy/sampledUses");
            out.format(
                    "policy    orders by %s   switched to LRU %d times   found of its sample %s %%, by LRU %s %%%n",
                    now.at("/policy/followsLru").booleanValue(false) ? "last use, as LRU finds more" : "importance",
                    number(now, "/policy/switches"),
                    percent(number(now, "/policy/hits"), sampled),
                    percent(number(now, "/policy/lruHits"), sampled));
        }

        /// Appends the estimated hit ratio for other memory sizes. Appends nothing if the server does not report
        /// it or was not used yet.
        private void appendMemory(Formatter out) {
            if (number(now, "/memoryCurve/uses") == 0) {
                return;
            }
            out.format("memory x ");
            for (JsonNode each : now.at("/memoryCurve/sizes")) {
                out.format(
                        "  %s: %.1f %%",
                        String.valueOf(each.get("factor").doubleValue()),
                        100 * each.get("lruHitRatio").doubleValue());
            }
            out.format("   would be found by LRU of what was found or put%n");
        }

        private void appendRequests(Formatter out) {
            out.format("%n%-24s %12s %10s %9s %9s%n", "REQUEST", "COUNT", "PER S", "P50 us", "P99 us");
            now.get("latency").properties().forEach(each -> {
                JsonNode kind = each.getValue();
                out.format(
                        "%-24s %12d %10s %9d %9d%n",
                        each.getKey(),
                        kind.get("count").longValue(),
                        rate("/latency/" + each.getKey() + "/count"),
                        kind.get("p50Micros").longValue(),
                        kind.get("p99Micros").longValue());
            });
        }

        private void appendTenants(Formatter out) {
            out.format(
                    "%n%-24s %12s %12s %7s %12s %12s %12s%n",
                    "TENANT", "KEYS", "LOOK-UPS", "HIT %", "STORED", "REFUSED", "DECLINED");
            now.get("tenants").properties().forEach(each -> {
                JsonNode tenant = each.getValue();
                long hits = number(tenant, "/reads/hits");
                long lookups = tenant.at("/reads").properties().stream()
                        .mapToLong(cause -> cause.getValue().longValue())
                        .sum(); // hits, and misses by their cause
                out.format(
                        "%-24s %12d %12d %7s %12d %12d %12d%n",
                        each.getKey(),
                        number(tenant, "/keys"),
                        lookups,
                        percent(hits, lookups),
                        number(tenant, "/writes/stored"),
                        number(tenant, "/writes/refused"),
                        number(tenant, "/writes/declined"));
            });
        }

        private void appendNamespaces(Formatter out) {
            out.format(
                    "%n%-24s %12s %12s %12s %7s %10s%n",
                    "NAMESPACE (TENANT)", "LIVE", "MIB", "BLOCKS ASKED", "HIT %", "FROM DISK");
            for (JsonNode each : now.get("namespaces")) {
                long asked = number(each, "/blocksAsked"); // look-ups of values are in the tenants' table
                long found = number(each, "/blocksFound");
                out.format(
                        "%-24s %12d %12.1f %12d %7s %10d%n",
                        each.get("name").stringValue() + " ("
                                + each.get("tenant").stringValue() + ")",
                        number(each, "/live"),
                        number(each, "/liveBytes") / MIB,
                        asked,
                        percent(found, asked),
                        number(each, "/blocksArrived"));
            }
        }

        private void appendDisks(Formatter out) {
            if (now.get("disks").isEmpty()) {
                return;
            }
            out.format("%n%-36s %-10s %12s %12s %10s%n", "DISK", "STATE", "READ MIB", "WRITTEN MIB", "READ FAILS");
            for (JsonNode each : now.get("disks")) {
                out.format(
                        "%-36s %-10s %12.1f %12.1f %10d%n",
                        each.get("name").stringValue(),
                        each.get("state").stringValue().toLowerCase(Locale.ROOT),
                        number(each, "/loadedBytes") / MIB,
                        number(each, "/tier/allBytesWritten") / MIB,
                        number(each, "/readFailures"));
            }
        }

        private static long number(JsonNode from, String path) {
            return from.at(path).longValue(0);
        }

        /// Returns the increase per second; empty text at first.
        private String rate(String path) {
            return before == null || seconds <= 0
                    ? "-"
                    : String.format(Locale.ROOT, "%.0f/s", (number(now, path) - number(before, path)) / seconds);
        }

        private static String percent(long part, long all) {
            return all == 0 ? "-" : String.format(Locale.ROOT, "%.1f", 100.0 * part / all);
        }
    }
}
