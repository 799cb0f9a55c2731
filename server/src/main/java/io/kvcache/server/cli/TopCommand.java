package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.Formatter;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache top`: a server's statistics each second, or once. In a terminal, keys change to the tree of shared prefixes
/// and to the last misses.
@Command(name = "top", description = "Watch a server's statistics.", mixinStandardHelpOptions = true)
final class TopCommand implements Callable<Integer> {

    private static final long SECOND_MILLIS = 1000;

    /// Cursor home, clear to the end.
    private static final String CLEAR_SCREEN = "\033[H\033[2J";

    /// All that is not shown, but for line ends.
    private static final Pattern HIDDEN = Pattern.compile("[\\p{C}&&[^\n]]");

    /// Kinds of requests that are shown in a terminal, the most frequent ones.
    private static final int MAX_REQUEST_ROWS = 10;

    private static final int CONTROL_C = 3;
    private static final int BACKSPACE = 127;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ConnectionOptions server = new ConnectionOptions();

    @Option(names = "--once", description = "Print them once and exit.")
    private boolean once;

    @Option(
            names = "--view",
            paramLabel = "VIEW",
            defaultValue = "overview",
            description = "What to show first: ${COMPLETION-CANDIDATES}. Default: ${DEFAULT-VALUE}.")
    private View view = View.overview;

    /// What is shown. Constants are named as they are typed.
    @SuppressWarnings("MemberName")
    private enum View {
        overview,
        prefixes,
        misses
    }

    @Override
    public Integer call() throws IOException {
        try (HttpApiClient client = server.httpClient()) {
            Screen screen = new Screen(client, view);
            if (!once && ProgressLine.isOnTerminal()) {
                watch(screen);
                return 0;
            }
            PrintWriter out = spec.commandLine().getOut();
            do {
                out.print(screen.next());
                out.flush();
            } while (!once && sleepOneSecond());
            return 0;
        }
    }

    /// Shows the screen each second, and at each key.
    private static void watch(Screen screen) throws IOException {
        try (Terminal terminal =
                TerminalBuilder.builder().system(true).dumb(true).build()) {
            terminal.enterRawMode();
            boolean goesOn = true;
            while (goesOn) {
                // A raw terminal does not return the carriage.
                terminal.writer().print(CLEAR_SCREEN + fit(screen.next(), terminal) + Screen.KEYS);
                terminal.writer().flush();
                goesOn = screen.onKey(terminal.reader().read(SECOND_MILLIS));
            }
        }
    }

    /// Cuts what would scroll, with a row left for the keys.
    private static String fit(String text, Terminal terminal) {
        int rows = terminal.getHeight() > 1 ? terminal.getHeight() - 1 : Integer.MAX_VALUE;
        int columns = terminal.getWidth() > 0 ? terminal.getWidth() : Integer.MAX_VALUE;
        return text.lines()
                .limit(rows)
                .map(line -> line.substring(0, Math.min(line.length(), columns)))
                .collect(Collectors.joining("\r\n", "", "\r\n"));
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

    /// What is shown of a server, and the keys that change it.
    private static final class Screen {

        static final String KEYS = "o overview   p prefixes (1-9 open one, u back)   m misses   q quit";

        private static final int NODES = 20;
        private static final int MISSES = 20;

        private final HttpApiClient client;
        private View view;
        private @Nullable JsonNode before;
        private long beforeNanos;
        private final Deque<String> path = new ArrayDeque<>();
        private List<String> shownKeys = List.of();

        Screen(HttpApiClient client, View view) {
            this.client = client;
            this.view = view;
        }

        /// Returns the text of the view by now; an error that the server answers takes its place.
        String next() throws IOException {
            try {
                return printable(
                        switch (view) {
                            case overview -> overview();
                            case prefixes -> prefixes();
                            case misses ->
                                new MissTable(client.hostAndPort(), client.get("/v1/misses?limit=" + MISSES)).format();
                        });
            } catch (HttpApiClient.HttpStatusException refused) {
                if (!ProgressLine.isOnTerminal()) {
                    throw refused;
                }
                return refused.getMessage() + "\n";
            }
        }

        private String overview() throws IOException {
            JsonNode now = client.get("/v1/stats");
            long nowNanos = System.nanoTime();
            String text = new TopTable(client.hostAndPort(), before, now, (nowNanos - beforeNanos) / 1e9).format();
            before = now;
            beforeNanos = nowNanos;
            return text;
        }

        private String prefixes() throws IOException {
            String under = path.isEmpty() ? "" : "&under=" + path.getLast();
            JsonNode level = client.get("/v1/prefixes?limit=" + NODES + under);
            List<String> keys = new ArrayList<>();
            level.get("nodes").forEach(node -> keys.add(node.get("key").stringValue()));
            shownKeys = keys;
            return new PrefixTable(client.hostAndPort(), path, level).format();
        }

        /// @param key a character, or negative when none was typed in time
        /// @return whether to go on
        boolean onKey(int key) {
            switch (key) {
                case 'q', CONTROL_C -> {
                    return false;
                }
                case 'o' -> view = View.overview;
                case 'p' -> view = View.prefixes;
                case 'm' -> view = View.misses;
                case 'u', BACKSPACE, '\b' -> path.pollLast();
                default -> {
                    int index = key - '1';
                    if (view == View.prefixes && index >= 0 && index < Math.min(9, shownKeys.size())) {
                        path.addLast(shownKeys.get(index));
                    }
                }
            }
            return true;
        }
    }

    /// A level of the tree of shared prefixes as a table for a terminal.
    ///
    /// @param path keys of the runs above it
    private record PrefixTable(String place, Collection<String> path, JsonNode level) {

        String format() {
            StringBuilder text = new StringBuilder();
            Formatter out = new Formatter(text, Locale.ROOT);
            out.format(
                    "kvcache at %s   %d blocks, %.1f MiB %s%n%n",
                    place,
                    level.get("blocks").longValue(),
                    level.get("bytes").longValue() / TopTable.MIB,
                    path.isEmpty() ? "in all prefixes" : "below " + path.size() + " prefixes");
            out.format(
                    "   %-14s %-28s %6s %6s %8s %9s %10s %6s %6s %7s %9s%n",
                    "PREFIX",
                    "NAMESPACE (TENANT)",
                    "DEPTH",
                    "RUN",
                    "BRANCHES",
                    "BLOCKS",
                    "MIB",
                    "MEM %",
                    "DISK %",
                    "USES",
                    "LAST USE");
            Map<Integer, String> names = new HashMap<>();
            level.get("namespaces")
                    .forEach(each -> names.put(
                            each.get("id").intValue(),
                            each.get("name").stringValue() + " ("
                                    + each.get("tenant").stringValue() + ")"));
            int number = 0;
            for (JsonNode node : level.get("nodes")) {
                long blocks = node.get("blocks").longValue();
                out.format(
                        "%2s %-14s %-28s %6d %6d %8d %9d %10.1f %6s %6s %7s %9s%n",
                        ++number > 9 ? "" : number,
                        node.get("key").stringValue().substring(0, 12),
                        names.getOrDefault(node.get("namespace").intValue(), ""),
                        node.get("depth").intValue(),
                        node.get("run").intValue(),
                        node.get("branches").intValue(),
                        blocks,
                        node.get("bytes").longValue() / TopTable.MIB,
                        TopTable.percent(node.get("memoryBlocks").longValue(), blocks),
                        TopTable.percent(node.get("diskBlocks").longValue(), blocks),
                        node.get("uses").isNull() ? "-" : node.get("uses").asString(),
                        node.get("lastUseSecondsAgo").isNull()
                                ? "-"
                                : node.get("lastUseSecondsAgo").asString() + " s");
            }
            if (level.get("more").longValue() > 0) {
                out.format("and %d more%n", level.get("more").longValue());
            }
            return text.toString();
        }
    }

    /// Replaces what would command the terminal, or turn text around: keys and names come from clients.
    private static String printable(String text) {
        return HIDDEN.matcher(text).replaceAll("?");
    }

    /// The last misses as a table for a terminal.
    private record MissTable(String place, JsonNode misses) {

        String format() {
            StringBuilder text = new StringBuilder();
            Formatter out = new Formatter(text, Locale.ROOT);
            out.format("kvcache at %s   why look-ups found nothing, or less%n%n", place);
            misses.get("reasons").properties().forEach(each -> {
                if (each.getValue().longValue() > 0) {
                    out.format(
                            "%-16s %12d%n",
                            each.getKey().replace('_', ' '), each.getValue().longValue());
                }
            });
            out.format(
                    "%n%-12s %-16s %-20s %-34s %11s %-16s %10s %s%n",
                    "AT", "TENANT", "NAMESPACE", "KEY", "FOUND OF", "REASON", "LEFT", "EVICTED BY");
            for (JsonNode miss : misses.get("recent")) {
                out.format(
                        "%-12s %-16s %-20s %-34s %5d %5d %-16s %10s %s%n",
                        miss.get("at").stringValue().replaceAll(".*T(.{8}).*", "$1"),
                        miss.get("tenant").stringValue(),
                        miss.get("namespace").stringValue(),
                        abbreviate(miss.get("key").stringValue()),
                        miss.get("found").intValue(),
                        miss.get("requested").intValue(),
                        miss.get("reason").stringValue().replace('_', ' '),
                        miss.get("leftSecondsAgo").isNull()
                                ? "-"
                                : miss.get("leftSecondsAgo").asString() + " s ago",
                        miss.get("orderedBy").isNull()
                                ? ""
                                : miss.get("orderedBy").stringValue());
            }
            return text.toString();
        }

        private static String abbreviate(String key) {
            return key.length() <= 34 ? key : key.substring(0, 33) + "…";
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
            if (host == null) {
                out.format(
                        "kvcache %s at %s: what is yours%n", now.get("version").stringValue(), place);
                return;
            }
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
                double factor = each.get("factor").doubleValue();
                if (factor != 0.5 && factor != 1 && factor != 2 && factor != 4) {
                    continue;
                }
                out.format(
                        "  %s: %.1f %%",
                        String.valueOf(factor), 100 * each.get("lruHitRatio").doubleValue());
            }
            out.format("   would be found by LRU of what was found or put%n");
        }

        private void appendRequests(Formatter out) {
            if (!now.has("latency")) {
                return;
            }
            out.format("%n%-24s %12s %10s %9s %9s%n", "REQUEST", "COUNT", "PER S", "P50 us", "P99 us");
            now.get("latency").properties().stream()
                    .sorted(Comparator.comparingLong(
                            each -> -each.getValue().get("count").longValue()))
                    .limit(MAX_REQUEST_ROWS)
                    .forEach(each -> {
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
            if (now.path("disks").isEmpty()) {
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
