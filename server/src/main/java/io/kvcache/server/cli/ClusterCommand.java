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

/// `kvcache cluster status`.
@Command(name = "cluster", description = "Show the cluster that a server is in.", mixinStandardHelpOptions = true)
final class ClusterCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache cluster takes a subcommand: status");
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

    /// A line on the view, then one for each server. Columns are as wide as their widest text.
    static String formatTable(JsonNode cluster) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("NODE", "STATE", "SHARE", "WEIGHT", "DROPS", "STARTED", "ADDRESS", "ZONE", "HOST", "VERSION"));
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
                text(node, "incarnation").replaceFirst("\\.\\d+", ""),
                text(node, "address"),
                orDash(text(node, "zone")),
                orDash(text(node, "host")),
                text(node, "version"));
    }

    private static String text(JsonNode from, String field) {
        return from.get(field).stringValue();
    }

    private static String orDash(String text) {
        return text.isEmpty() ? "-" : text;
    }
}
