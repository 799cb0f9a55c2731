package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache cluster status` and `kvcache cluster drain`.
@Command(
        name = "cluster",
        description = "Show the cluster that a server is in, or drain the server.",
        mixinStandardHelpOptions = true)
final class ClusterCommand implements Runnable {

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
            description = "Show the servers of the cluster with states and shares, as one of them sees it.",
            mixinStandardHelpOptions = true)
    int status(
            @Mixin ConnectionOptions server,
            @Option(names = "--json", description = "Print the server's JSON.") boolean json)
            throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        try (HttpApiClient client = server.httpClient()) {
            JsonNode cluster = client.get("/v1/cluster");
            out.print(json ? cluster.toPrettyString() + "\n" : formatTable(cluster));
        }
        out.flush();
        return 0;
    }

    @Command(
            name = "drain",
            description = "Take a server out of service: the others own everything from then on, and get what it has in"
                    + " memory. It goes on running until it is stopped.",
            mixinStandardHelpOptions = true)
    int drain(
            @Mixin ConnectionOptions server,
            @Option(names = "--wait", description = "Show the handover until it is over.") boolean wait,
            @Option(names = "--force", description = "Drain even the only server that serves.") boolean force,
            @Option(names = "--undo", description = "Let the server serve again.") boolean undo)
            throws IOException, InterruptedException {
        if (undo && (wait || force)) {
            throw new ParameterException(spec.commandLine(), "--undo takes neither --wait nor --force");
        }
        try (HttpApiClient client = server.httpClient()) {
            if (undo) {
                print(text(client.delete(DRAIN_PATH), "node") + " serves again");
                return 0;
            }
            JsonNode drain = client.post(DRAIN_PATH + (force ? "?force=true" : ""));
            print(text(drain, "node") + " drains: it owns nothing any more, and hands over what it has in memory.");
            print("Values that may change stay here, and count as absent meanwhile.");
            if (!wait) {
                print(
                        "`kvcache cluster drain --wait` shows how far it is; `kvcache cluster drain --undo` ends the drain");
                return 0;
            }
            return followHandover(client, drain);
        }
    }

    private int followHandover(HttpApiClient client, JsonNode begun) throws IOException, InterruptedException {
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
        print("Next: stop the server by SIGTERM, or let it serve again by `kvcache cluster drain --undo`");
        return 0;
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

    /// A line on the view, one for each server, and one for each that has other settings. Columns are as wide as
    /// their widest text.
    static String formatTable(JsonNode cluster) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of(
                "NODE", "STATE", "SHARE", "WEIGHT", "DROPS", "CONFIG", "STARTED", "ADDRESS", "ZONE", "HOST",
                "VERSION"));
        cluster.get("nodes").forEach(node -> rows.add(row(node)));
        int[] widths = IntStream.range(0, rows.getFirst().size())
                .map(column -> rows.stream()
                        .mapToInt(row -> row.get(column).length())
                        .max()
                        .orElse(0))
                .toArray();
        StringBuilder table = new StringBuilder(String.format(
                Locale.ROOT,
                "cluster %s: %d %s in view %d of %s, digest %s%n",
                text(cluster, "cluster"),
                rows.size() - 1,
                rows.size() == 2 ? "server" : "servers",
                cluster.get("epoch").longValue(),
                text(cluster, "node"),
                text(cluster, "digest")));
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int column = 0; column < widths.length; column++) {
                String cell = row.get(column);
                line.append(cell).repeat(' ', widths[column] - cell.length() + 2);
            }
            table.append(line.toString().stripTrailing()).append(System.lineSeparator());
        }
        for (JsonNode node : cluster.get("nodes")) {
            List<String> settings = differences(node);
            if (!settings.isEmpty()) {
                table.append("CONFIG differs at ")
                        .append(text(node, "name"))
                        .append(": ")
                        .append(String.join(", ", settings))
                        .append(System.lineSeparator());
            }
        }
        return table.toString();
    }

    private static List<String> row(JsonNode node) {
        return List.of(
                text(node, "name"),
                text(node, "state"),
                String.format(Locale.ROOT, "%.1f %%", node.get("sharePercent").doubleValue()),
                BigDecimal.valueOf(node.get("weight").doubleValue())
                        .round(new MathContext(4))
                        .stripTrailingZeros()
                        .toPlainString(),
                node.get("dropsAgree").booleanValue() ? "same" : "differ",
                config(node),
                text(node, "incarnation").replaceFirst("\\.\\d+", ""),
                text(node, "address"),
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
