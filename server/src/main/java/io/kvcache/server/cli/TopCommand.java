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
import java.util.stream.Stream;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache top`: a server's statistics each second, or once. In a terminal, keys change to the tree of shared
/// prefixes and to the last misses.
@Command(name = "top", description = "Watch a server's statistics.", mixinStandardHelpOptions = true)
final class TopCommand implements Callable<Integer> {

    private static final long SECOND_MILLIS = 1000;

    /// Cursor home, clear to the end.
    private static final String CLEAR_SCREEN = "\033[H\033[2J";

    /// All that is not shown, but for line ends.
    private static final Pattern HIDDEN = Pattern.compile("[\\p{C}&&[^\n]]");

    /// Rows where nothing limits them.
    private static final int ALL_ROWS = Integer.MAX_VALUE;

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
                out.print(screen.next(ALL_ROWS));
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
                int rows = terminal.getHeight() > 1 ? terminal.getHeight() - 1 : ALL_ROWS; // one is for the keys
                terminal.writer().print(CLEAR_SCREEN + fit(screen.next(rows), rows, terminal) + Screen.KEYS);
                terminal.writer().flush();
                goesOn = screen.onKey(terminal.reader().read(SECOND_MILLIS));
            }
        }
    }

    /// Cuts what would scroll.
    private static String fit(String text, int rows, Terminal terminal) {
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

        private static final int NODES = 19;
        private static final int MISSES = 18;

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
        String next(int rows) throws IOException {
            try {
                return printable(
                        switch (view) {
                            case overview -> overview(rows);
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

        private String overview(int rows) throws IOException {
            JsonNode now = client.get("/v1/stats");
            JsonNode minute = client.get("/v1/history?minutes=1").get("samples");
            long nowNanos = System.nanoTime();
            double seconds = (nowNanos - beforeNanos) / 1e9;
            String text = new TopTable(client.hostAndPort(), before, now, minute, seconds).format(rows);
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
                    "   %-10s %-14s %5s %5s %4s %7s %8s %5s %4s %5s%n",
                    "PREFIX", "NAMESPACE", "DEPTH", "RUN", "SUBS", "BLOCKS", "MIB", "MEM %", "USES", "LAST");
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
                        "%2s %-10s %-14s %5s %5d %4d %7d %8.1f %5s %4s %5s%n",
                        ++number > 9 ? "" : number,
                        node.get("key").stringValue().substring(0, 10),
                        abbreviate(names.getOrDefault(node.get("namespace").intValue(), ""), 14),
                        node.get("depth").isNull() ? "-" : node.get("depth").asString(),
                        node.get("run").intValue(),
                        node.get("branches").intValue(),
                        blocks,
                        node.get("bytes").longValue() / TopTable.MIB,
                        TopTable.percent(node.get("memoryBlocks").longValue(), blocks),
                        node.get("uses").isNull() ? "-" : node.get("uses").asString(),
                        ago(node.get("lastUseSecondsAgo")));
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
            String reasons = misses.get("reasons").properties().stream()
                    .filter(each -> each.getValue().longValue() > 0)
                    .map(each -> each.getKey().replace('_', ' ') + " "
                            + each.getValue().longValue())
                    .collect(Collectors.joining(", "));
            out.format("%s%n", TextWidth.wrap(reasons, 80));
            out.format(
                    "%n%-8s %-9s %-11s %-14s %9s %-15s %8s%n",
                    "AT", "TENANT", "NAMESPACE", "KEY", "FOUND", "REASON", "LEFT");
            for (JsonNode miss : misses.get("recent")) {
                out.format(
                        "%-8s %-9s %-11s %-14s %9s %-15s %8s%n",
                        miss.get("at").stringValue().replaceAll(".*T(.{8}).*", "$1"),
                        abbreviate(miss.get("tenant").stringValue(), 9),
                        abbreviate(miss.get("namespace").stringValue(), 11),
                        keyEnd(miss.get("key").stringValue(), 14),
                        miss.get("found").intValue() + "/"
                                + miss.get("requested").intValue(),
                        abbreviate(miss.get("reason").stringValue().replace('_', ' '), 15),
                        ago(miss.get("leftSecondsAgo")));
            }
            return text.toString();
        }
    }

    private static String abbreviate(String text, int columns) {
        return text.length() <= columns ? text : text.substring(0, columns - 1) + "…";
    }

    /// Keys of one model differ in their ends.
    private static String keyEnd(String key, int columns) {
        return key.length() <= columns ? key : "…" + key.substring(key.length() - columns + 1);
    }

    /// Returns a time ago in the largest unit that fits.
    private static String ago(JsonNode secondsAgo) {
        if (secondsAgo.isNull()) {
            return "-";
        }
        long seconds = secondsAgo.asLong();
        return seconds < 1000 ? seconds + " s" : seconds < 60_000 ? seconds / 60 + " m" : seconds / 3600 + " h";
    }

    /// A server's statistics for a terminal of 80 columns: what it found and saved and how fast, then the details.
    ///
    /// @param place host and port
    /// @param before the statistics some time before, or null; rates are of the time between
    /// @param minute samples of the last minute
    /// @param seconds the time since `before`
    record TopTable(String place, @Nullable JsonNode before, JsonNode now, JsonNode minute, double seconds) {

        private static final double MIB = 1 << 20;

        /// Lines of a section beside its rows: a blank one and its heading.
        private static final int SECTION_LINES = 2;

        /// A table below the first lines; its most important rows come first.
        private record Section(String name, String heading, List<String> rows) {}

        /// @param lines as many as there may be, if there are not more sections
        String format(int lines) {
            StringBuilder text = new StringBuilder();
            Formatter out = new Formatter(text, Locale.ROOT);
            String whose = now.get("host") == null ? ": what is yours" : ""; // of a tenant its own part alone
            out.format("kvcache %s at %s%s%n", now.get("version").stringValue(), place, whose);
            appendLastMinute(out);
            appendServer(out);
            appendPolicy(out);
            appendMemory(out);
            List<Section> sections = Stream.of(requests(), tenants(), namespaces(), disks())
                    .filter(section -> !section.rows.isEmpty())
                    .toList();
            int room = lines - (int) text.chars().filter(c -> c == '\n').count() - SECTION_LINES * sections.size();
            int[] shown = share(Math.max(sections.size(), room), sections);
            for (int i = 0; i < sections.size(); i++) {
                Section section = sections.get(i);
                int all = section.rows.size();
                String name = shown[i] < all ? section.name + ", " + shown[i] + " of " + all : section.name;
                out.format("%n%s%n", String.format(Locale.ROOT, section.heading, name));
                section.rows.subList(0, shown[i]).forEach(row -> out.format("%s%n", row));
            }
            return text.toString();
        }

        /// Deals rows out one by one, so that a long section leaves the others theirs.
        private static int[] share(int room, List<Section> sections) {
            int[] shown = new int[sections.size()];
            boolean dealt = true;
            for (int left = room; left > 0 && dealt; ) {
                dealt = false;
                for (int i = 0; i < shown.length && left > 0; i++) {
                    if (shown[i] < sections.get(i).rows.size()) {
                        shown[i]++;
                        left--;
                        dealt = true;
                    }
                }
            }
            return shown;
        }

        private void appendLastMinute(Formatter out) {
            if (minute.isEmpty()) {
                out.format("last minute  the first sample comes 10 s after the start%n");
                return;
            }
            long hits = sum("memoryHits") + sum("diskHits") + sum("deviceHits");
            long tokens = sum("tokensSaved");
            out.format(
                    "last minute  found %s %% of %,d   saved %s tokens",
                    percent(hits, hits + sum("misses")), hits + sum("misses"), count(tokens));
            if (!minute.get(0).get("requests").isNull()) { // a tenant is not told the latencies of all
                long slowest = 0;
                for (JsonNode sample : minute) {
                    slowest = Math.max(slowest, sample.get("p99Micros").longValue(0));
                }
                out.format("   p99 %.2f ms", slowest / 1e3);
            }
            out.format("%n");
        }

        private long sum(String field) {
            long sum = 0;
            for (JsonNode sample : minute) {
                sum += sample.get(field).longValue();
            }
            return sum;
        }

        private void appendServer(Formatter out) {
            JsonNode host = now.get("host");
            if (host == null) {
                return; // a tenant sees its own part alone
            }
            long held = host.get("heldBytes").longValue();
            long capacity = host.get("capacityBytes").longValue();
            out.format(
                    "memory       %.0f of %.0f MiB (%d %%), %d records, %d connections, %d views%n",
                    held / MIB,
                    capacity / MIB,
                    100 * held / Math.max(1, capacity),
                    now.at("/records/live").longValue(),
                    now.at("/connections/open").longValue(),
                    now.get("openViews").longValue());
            out.format(
                    "removed      evicted %d (%s), dropped %d, replaced %d, quota %d%n",
                    number(now, "/removals/evicted"),
                    rate("/removals/evicted"),
                    number(now, "/removals/dropped"),
                    number(now, "/removals/replaced"),
                    number(now, "/removals/quota"));
            out.format(
                    "puts         refused for room %d, declined %d%n",
                    number(now, "/puts/noRoom"), number(now, "/puts/declined"));
        }

        /// Appends how the policy that learns does beside LRU. Appends nothing under other policies, and before
        /// the first use.
        private void appendPolicy(Formatter out) {
            if (number(now, "/policy/uses") == 0) {
                return;
            }
            long own = number(now, "/policy/hits");
            long lru = number(now, "/policy/lruHits");
            boolean follows = now.at("/policy/followsLru").booleanValue(false);
            String difference = lru == 0
                    ? ""
                    : String.format(
                            Locale.ROOT,
                            ": in a sample importance finds %.0f %% %s than LRU",
                            100.0 * Math.abs(own - lru) / lru,
                            own < lru ? "less" : "more");
            out.format("policy       %s%s%n", follows ? "last use" : "importance", difference);
        }

        /// Appends the estimated hit ratio for other memory sizes: of what was found and what was put, so that it
        /// is not the ratio of look-ups in the first line. Appends nothing if the server does not report it or
        /// was not used yet.
        private void appendMemory(Formatter out) {
            if (number(now, "/memoryCurve/uses") == 0) {
                return;
            }
            out.format("memory x   ");
            for (JsonNode each : now.at("/memoryCurve/sizes")) {
                double factor = each.get("factor").doubleValue();
                if (factor == 0.5 || factor == 1 || factor == 2 || factor == 4) {
                    String times = String.valueOf(factor).replaceFirst("\\.0$", "");
                    out.format(
                            "  %s: %.0f %%",
                            times, 100 * each.get("lruHitRatio").doubleValue());
                }
            }
            out.format("  of finds and puts, by LRU%n");
        }

        private Section requests() {
            List<String> rows = now.path("latency").properties().stream()
                    .sorted(Comparator.comparingLong(
                            each -> -each.getValue().get("count").longValue()))
                    .map(each -> String.format(
                            Locale.ROOT,
                            "%-24s %12d %10s %9d %9d",
                            each.getKey(),
                            each.getValue().get("count").longValue(),
                            rate("/latency/" + each.getKey() + "/count"),
                            each.getValue().get("p50Micros").longValue(),
                            each.getValue().get("p99Micros").longValue()))
                    .toList();
            return new Section("REQUEST", "%-24s        COUNT      PER S    P50 us    P99 us", rows);
        }

        private Section tenants() {
            List<String> rows = now.get("tenants").properties().stream()
                    .sorted(Comparator.comparingLong(each -> -lookUps(each.getValue())))
                    .map(each -> {
                        JsonNode tenant = each.getValue();
                        return String.format(
                                Locale.ROOT,
                                "%-20s %9d %12d %7s %9d %8d %8d",
                                abbreviate(each.getKey(), 20),
                                number(tenant, "/keys"),
                                lookUps(tenant),
                                percent(number(tenant, "/reads/hits"), lookUps(tenant)),
                                number(tenant, "/writes/stored"),
                                number(tenant, "/writes/refused"),
                                number(tenant, "/writes/declined"));
                    })
                    .toList();
            return new Section("TENANT", "%-20s      KEYS     LOOK-UPS   HIT %%    STORED  REFUSED DECLINED", rows);
        }

        /// Hits, and misses by their cause.
        private static long lookUps(JsonNode tenant) {
            return number(tenant, "/reads/hits")
                    + tenant.at("/reads/missed").properties().stream()
                            .mapToLong(cause -> cause.getValue().longValue())
                            .sum();
        }

        private Section namespaces() {
            List<String> rows = now.get("namespaces")
                    .valueStream()
                    .sorted(Comparator.comparingLong(each -> -number(each, "/liveBytes")))
                    .map(each -> {
                        long asked = number(each, "/blocksAsked"); // look-ups of values are in the tenants' table
                        long found = number(each, "/blocksFound");
                        String name = each.get("name").stringValue() + " ("
                                + each.get("tenant").stringValue() + ")";
                        return String.format(
                                Locale.ROOT,
                                "%-24s %10d %10.1f %12d %7s %12d",
                                abbreviate(name, 24),
                                number(each, "/live"),
                                number(each, "/liveBytes") / MIB,
                                asked,
                                percent(found, asked),
                                number(each, "/blocksArrived"));
                    })
                    .toList();
            return new Section("NAMESPACE", "%-24s       LIVE        MIB BLOCKS ASKED   HIT %%    FROM DISK", rows);
        }

        private Section disks() {
            List<String> rows = now.path("disks")
                    .valueStream()
                    .map(each -> String.format(
                            Locale.ROOT,
                            "%-10s %12.1f %12.1f %10d  %s",
                            each.get("state").stringValue().toLowerCase(Locale.ROOT),
                            number(each, "/loadedBytes") / MIB,
                            number(each, "/tier/allBytesWritten") / MIB,
                            number(each, "/readFailures"),
                            each.get("name").stringValue()))
                    .toList();
            return new Section("DISK", "STATE          READ MIB  WRITTEN MIB READ FAILS  %s", rows);
        }

        private static long number(JsonNode from, String path) {
            return from.at(path).longValue(0);
        }

        /// Returns the increase per second; `-` at first.
        private String rate(String path) {
            return before == null || seconds <= 0
                    ? "-"
                    : String.format(Locale.ROOT, "%.0f/s", (number(now, path) - number(before, path)) / seconds);
        }

        /// `950`, `12.3 k`, `4.5 M`: three digits and their unit.
        private static String count(long number) {
            return number < 10_000
                    ? String.format(Locale.ROOT, "%,d", number)
                    : number < 1_000_000
                            ? String.format(Locale.ROOT, "%.1f k", number / 1e3)
                            : String.format(Locale.ROOT, "%,.1f M", number / 1e6);
        }

        private static String percent(long part, long all) {
            return all == 0 ? "-" : String.format(Locale.ROOT, "%.1f", 100.0 * part / all);
        }
    }
}
