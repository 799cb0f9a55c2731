package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import io.kvcache.server.client.HttpApiClient.HttpStatusException;
import java.io.IOException;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache cluster status` and `kvcache cluster drain`.
@Command(
        name = "cluster",
        description = "Show the cluster that a server is in, or drain the server.",
        mixinStandardHelpOptions = true)
final class ClusterCommand implements Runnable {

    private static final String VIEW_PATH = "/v1/cluster";
    private static final String DRAIN_PATH = "/v1/cluster/drain";

    private static final long POLL_MILLIS = 500;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache cluster takes a subcommand: status or drain");
    }

    @Command(
            name = "status",
            description = {
                "Show the servers of the cluster with states and shares, as one of them sees it.",
                "Exits with 1 while that one joins."
            },
            mixinStandardHelpOptions = true)
    int status(
            @Mixin ConnectionOptions server,
            @Option(names = "--json", description = "Print the server's JSON.") boolean json,
            @Option(names = "--wait", paramLabel = "N", description = "Wait until N servers serve.") @Nullable
                    Integer wait,
            @Option(
                            names = "--timeout",
                            paramLabel = "SECONDS",
                            defaultValue = "60",
                            description = "Longest time to wait. Default: ${DEFAULT-VALUE}.")
                    int timeout)
            throws IOException, InterruptedException {
        if (wait != null && wait < 1) {
            throw server.usageError("--wait is " + wait + "; it takes the number of servers, from 1 on");
        }
        if (timeout < 0) {
            throw server.usageError("--timeout is " + timeout + "; it takes seconds, from 0 on");
        }
        try (HttpApiClient client = server.httpClient()) {
            ClusterTable cluster = wait == null
                    ? new ClusterTable(client.get(VIEW_PATH))
                    : awaitServing(client, wait, Duration.ofSeconds(timeout));
            show(cluster, json);
            if (wait != null && !cluster.hasServing(wait)) {
                printError(cluster.describeMissing(wait) + "; waited for " + timeout + " s");
                return 1;
            }
            if (cluster.isJoining()) {
                printError(cluster.describeJoining());
                return 1;
            }
            return 0;
        }
    }

    /// Prints a cluster. An empty view has no table.
    private void show(ClusterTable cluster, boolean json) {
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(cluster.cluster().toPrettyString());
        } else if (!cluster.isEmpty()) {
            out.print(cluster.format());
        }
        out.flush();
    }

    /// Asks until enough servers serve, or the time is over. A server that is not there yet may still start.
    ///
    /// @return the last reply
    /// @throws IOException when there was none
    private static ClusterTable awaitServing(HttpApiClient client, int count, Duration timeout)
            throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (true) {
            boolean over = System.nanoTime() - start >= timeout.toNanos();
            try {
                ClusterTable cluster = new ClusterTable(client.get(VIEW_PATH));
                if (over || cluster.hasServing(count)) {
                    return cluster;
                }
            } catch (HttpStatusException refused) {
                throw refused;
            } catch (IOException notYet) {
                if (over) {
                    throw new IOException(
                            notYet.getMessage() + "; waited for " + timeout.toSeconds() + " s for " + count
                                    + (count == 1 ? " server" : " servers") + " that serve",
                            notYet);
                }
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    @Command(
            name = "drain",
            description = {
                "Take the server at --host and --port out of service: the other servers own everything from then on,"
                        + " and get its blocks in memory and its values that never change.",
                "Values that may change are lost to clients at once, and --undo does not bring them back.",
                "The server goes on running until it is stopped."
            },
            mixinStandardHelpOptions = true)
    int drain(
            @Mixin ConnectionOptions server,
            @Option(names = "--wait", description = "Show the handover until it is over.") boolean wait,
            @Option(names = "--force", description = "Drain even the only server that serves.") boolean force,
            @Option(names = "--undo", description = "Let the server serve again.") boolean undo,
            @Parameters(arity = "0..*", hidden = true) @Nullable List<String> names)
            throws IOException, InterruptedException {
        if (names != null && !names.isEmpty()) {
            throw server.usageError("kvcache cluster drain takes no node's name, such as '" + names.getFirst()
                    + "': it acts on the server at --host and --port, here " + server.hostAndPort());
        }
        if (undo && (wait || force)) {
            throw server.usageError("--undo takes neither --wait nor --force");
        }
        try (HttpApiClient client = server.httpClient()) {
            if (undo) {
                return undoDrain(client);
            }
            JsonNode drain = client.post(DRAIN_PATH + (force ? "?force=true" : ""));
            print(text(drain, "node") + " drains: it owns nothing any more, and hands over its blocks in memory and its"
                    + " values that never change.");
            print("Values that may change are lost to clients from now on; --undo does not bring them back.");
            String again = "`kvcache cluster drain" + server.repeated();
            if (!wait) {
                print(again + " --wait` shows how far it is; " + again + " --undo` ends the drain");
                return 0;
            }
            followHandover(client, drain);
            print("Next: stop the server by SIGTERM, or let it serve again by " + again + " --undo`");
            return 0;
        }
    }

    private int undoDrain(HttpApiClient client) throws IOException {
        boolean wasServing = text(client.get(DRAIN_PATH), "state").equals("serving");
        JsonNode drain = client.delete(DRAIN_PATH);
        print(text(drain, "node") + (wasServing ? " was not drained: it serves" : " serves again"));
        return 0;
    }

    private void followHandover(HttpApiClient client, JsonNode begun) throws IOException, InterruptedException {
        JsonNode drain = begun;
        String shown = formatGiven(drain.get("handover"));
        while (isHandingOver(drain)) {
            Thread.sleep(POLL_MILLIS);
            drain = client.get(DRAIN_PATH);
            String given = formatGiven(drain.get("handover"));
            if (isHandingOver(drain) && !given.equals(shown)) {
                print("  " + given + " given");
                shown = given;
            }
        }
        if (!text(drain, "state").equals("draining")) {
            throw new IOException(text(drain, "node") + " is " + text(drain, "state") + ": the drain was undone");
        }
        print(formatHandover(drain));
    }

    private static boolean isHandingOver(JsonNode drain) {
        return text(drain, "state").equals("draining")
                && drain.at("/handover/running").booleanValue();
    }

    /// The result of a handover.
    static String formatHandover(JsonNode drain) {
        if (drain.get("othersServing").longValue() == 0) {
            return "no other server serves, so nothing could be given";
        }
        JsonNode handover = drain.get("handover");
        int left = handover.get("left").intValue();
        long valuesLeft = handover.get("valuesLeft").longValue();
        return String.format(
                Locale.ROOT,
                "handed over %d chains, %s; %s",
                handover.get("chains").intValue(),
                formatGiven(handover),
                left + valuesLeft == 0
                        ? "none are left"
                        : left + " chains and " + valuesLeft + " values are left, as shutdown.drain is over or their"
                                + " owners took no more; a stop tries them again");
    }

    private static String formatGiven(JsonNode handover) {
        return handover.get("blocks").longValue() + " blocks, "
                + handover.get("values").longValue() + " values";
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }

    private void printError(String line) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println("kvcache: " + line);
        errors.flush();
    }

    private static String text(JsonNode from, String field) {
        return from.get(field).stringValue();
    }

    /// The cluster as one of its servers sees it, for people.
    ///
    /// @param cluster the server's JSON
    record ClusterTable(JsonNode cluster) {

        private static final List<String> HEADINGS = List.of(
                "NODE",
                "STATE",
                "SHARE",
                "WEIGHT",
                "DROPS",
                "CONFIG",
                "STARTED",
                "ADDRESS",
                "RESP-CLUSTER",
                "ZONE",
                "HOST",
                "VERSION");

        /// Returns whether the server that was asked is not in the cluster yet.
        boolean isJoining() {
            return text(cluster, "state").equals("joining");
        }

        /// Returns whether the view has any server.
        boolean isEmpty() {
            return cluster.get("nodes").isEmpty();
        }

        /// Says why the server that was asked does not serve.
        String describeJoining() {
            return text(cluster, "node") + " is " + text(cluster, "notServing");
        }

        /// Returns whether the server that was asked has joined, and this many serve.
        boolean hasServing(int count) {
            return !isJoining() && servingCount() >= count;
        }

        /// Says which servers are missing.
        ///
        /// @param count how many should serve
        String describeMissing(int count) {
            String asked = text(cluster, "node");
            List<String> reasons = new ArrayList<>();
            int unknown = count - nodes().size();
            if (isJoining()) {
                reasons.add(describeJoining());
                unknown -= nodes().stream().anyMatch(node -> text(node, "name").equals(asked)) ? 0 : 1;
            }
            nodes().stream()
                    .filter(node -> !text(node, "state").equals("serving"))
                    .filter(node -> !isJoining() || !text(node, "name").equals(asked))
                    .map(node -> text(node, "name") + " is " + text(node, "state"))
                    .forEach(reasons::add);
            if (unknown > 0) {
                reasons.add(unknown + (unknown == 1 ? " is" : " are") + " not in the view of " + asked);
            }
            return servingCount() + " of " + count + " servers serve: " + String.join(", ", reasons);
        }

        private long servingCount() {
            return nodes().stream()
                    .filter(node -> text(node, "state").equals("serving"))
                    .count();
        }

        private List<JsonNode> nodes() {
            return StreamSupport.stream(cluster.get("nodes").spliterator(), false)
                    .toList();
        }

        /// Returns a line on the view, one for each server, one for each that has other settings, and one for
        /// each that has left within the last hour. Columns are as wide as their widest text.
        String format() {
            List<List<String>> rows = new ArrayList<>();
            rows.add(HEADINGS);
            nodes().forEach(node -> rows.add(row(node)));
            StringBuilder table = new StringBuilder(String.format(
                    Locale.ROOT,
                    "cluster %s: %d %s in view %d of %s, digest %s%n",
                    text(cluster, "cluster"),
                    rows.size() - 1,
                    rows.size() == 2 ? "server" : "servers",
                    cluster.get("epoch").longValue(),
                    text(cluster, "node"),
                    text(cluster, "digest")));
            int[] widths = IntStream.range(0, HEADINGS.size())
                    .map(column -> rows.stream()
                            .mapToInt(row -> row.get(column).length())
                            .max()
                            .orElse(0))
                    .toArray();
            for (List<String> row : rows) {
                StringBuilder line = new StringBuilder();
                for (int column = 0; column < widths.length; column++) {
                    String cell = row.get(column);
                    line.append(cell).repeat(' ', widths[column] - cell.length() + 2);
                }
                table.append(line.toString().stripTrailing()).append(System.lineSeparator());
            }
            for (JsonNode node : nodes()) {
                List<String> settings = differences(node);
                if (!settings.isEmpty()) {
                    table.append("CONFIG differs at ")
                            .append(text(node, "name"))
                            .append(": ")
                            .append(String.join(", ", settings))
                            .append("; GET /v1/settings at both has the values")
                            .append(System.lineSeparator());
                }
            }
            cluster.get("left").forEach(node -> table.append(describeLeft(node)).append(System.lineSeparator()));
            return table.toString();
        }

        private static String describeLeft(JsonNode node) {
            long seconds = node.get("secondsAgo").longValue();
            return text(node, "name") + " left " + (seconds < 60 ? seconds + " s" : seconds / 60 + " min") + " ago"
                    + (node.get("drained").booleanValue() ? "" : ", without a drain");
        }

        private static List<String> row(JsonNode node) {
            return List.of(
                    text(node, "name"),
                    text(node, "state"),
                    String.format(
                            Locale.ROOT, "%.1f %%", node.get("sharePercent").doubleValue()),
                    BigDecimal.valueOf(node.get("weight").doubleValue())
                            .round(new MathContext(4))
                            .stripTrailingZeros()
                            .toPlainString(),
                    node.get("dropsAgree").booleanValue() ? "same" : "differ",
                    config(node),
                    text(node, "incarnation").replaceFirst("\\.\\d+", ""),
                    text(node, "address"),
                    orDash(text(node, "valueAddress")),
                    orDash(text(node, "zone")),
                    orDash(text(node, "host")),
                    text(node, "version"));
        }

        private static String config(JsonNode node) {
            if (!node.path("configDiffers").isArray()) {
                return "-"; // it has not told, or is of an earlier version
            }
            return differences(node).isEmpty() ? "same" : "differ";
        }

        private static List<String> differences(JsonNode node) {
            List<String> settings = new ArrayList<>();
            node.path("configDiffers").forEach(setting -> settings.add(setting.stringValue()));
            return settings;
        }

        private static String text(JsonNode from, String field) {
            return from.get(field).stringValue();
        }

        private static String orDash(String text) {
            return text.isEmpty() ? "-" : text;
        }
    }
}
