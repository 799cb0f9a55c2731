package io.kvcache.transport.cluster;

import java.nio.charset.StandardCharsets;

/// A server as [Placement] sees it.
///
/// @param name 1 to 255 bytes of UTF-8 without NUL. It decides what the server keeps, so it stays the same over
///     restarts and changes of address
/// @param weight share of the groups relative to the other servers, 0.001 to 1,000,000; for example its memory in GiB
/// @param zone where copies fail together, at most 255 bytes of UTF-8; empty if unknown
/// @param host the machine, at most 255 bytes of UTF-8; empty if unknown
public record ClusterNode(String name, double weight, String zone, String host) {

    private static final int MAX_TEXT_BYTES = 255;
    private static final double MIN_WEIGHT = 0.001;
    private static final double MAX_WEIGHT = 1_000_000;

    public ClusterNode {
        checkText("name", name, 1);
        checkText("zone", zone, 0);
        checkText("host", host, 0);
        if (!(weight >= MIN_WEIGHT && weight <= MAX_WEIGHT)) {
            throw new IllegalArgumentException(
                    "weight = %s of node %s is out of range; allowed: 0.001 to 1,000,000".formatted(weight, name));
        }
    }

    /// A server of weight 1 in no known zone.
    public static ClusterNode named(String name) {
        return new ClusterNode(name, 1, "", "");
    }

    /// @throws IllegalArgumentException for a text that is too short or too long, or holds NUL
    static void checkText(String field, String text, int minBytes) {
        int bytes = text.getBytes(StandardCharsets.UTF_8).length;
        if (bytes < minBytes || bytes > MAX_TEXT_BYTES || text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("%s '%s' has %s bytes; allowed: %s to %s bytes of UTF-8 without NUL"
                    .formatted(field, text, bytes, minBytes, MAX_TEXT_BYTES));
        }
    }
}
