package io.kvcache.server.cli;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import tools.jackson.databind.JsonNode;

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
        return StreamSupport.stream(cluster.get("nodes").spliterator(), false).toList();
    }

    /// Returns a line on the view, one for each server, one for each that has other settings, and one for each
    /// that has left within the last hour. Columns are as wide as their widest text.
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
                String.format(Locale.ROOT, "%.1f %%", node.get("sharePercent").doubleValue()),
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
