package io.kvcache.bench.lab;

import java.util.List;

/// How much memory a hit ratio takes. The fields' names are what programs rely on.
///
/// @param targetHitRatio in full blocks
/// @param ceiling what is found with memory for everything
/// @param laterCeiling the same of the second half of the requests, after the first
/// @param spanMinutes from the first request to the last
/// @param truncated whether the trace is too short to show all reuse
/// @param rows one a policy; none when the target cannot be reached
/// @param fleets private caches, when they were asked for
public record SizingResult(
        String trace,
        String model,
        int blockTokens,
        double targetHitRatio,
        double ceiling,
        double laterCeiling,
        double spanMinutes,
        boolean truncated,
        List<Row> rows,
        List<FleetRow> fleets) {

    /// Copies the lists.
    public SizingResult {
        rows = List.copyOf(rows);
        fleets = List.copyOf(fleets);
    }

    /// Whether there is a capacity that reaches the target.
    public boolean reachable() {
        return targetHitRatio <= ceiling;
    }

    /// One policy.
    ///
    /// @param tiers how the capacity is spread, the fastest first; capacities add up
    public record Row(String policy, int blocks, long bytes, List<Tier> tiers) {

        /// Copies the list.
        public Row {
            tiers = List.copyOf(tiers);
        }
    }

    /// A tier's part.
    ///
    /// @param tier device, host or disk
    /// @param hitRatio of all blocks looked up, those found in this tier
    /// @param millisABlock to bring one block to the device
    public record Tier(String tier, long bytes, double hitRatio, double millisABlock) {}

    /// Instances with private LRU caches.
    ///
    /// @param sameMemoryHitRatio with the bytes together that one shared LRU cache needs
    /// @param ceiling with memory for everything
    /// @param blocks that they need together for the target, -1 when nothing would do
    /// @param bytes likewise
    /// @param busiest prompt tokens of the instance that gets the most, over the mean
    public record FleetRow(
            int instances,
            String route,
            double sameMemoryHitRatio,
            double ceiling,
            long blocks,
            long bytes,
            double busiest) {}
}
