package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningRows.Row;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult.FirstTokens;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult.TierMoney;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The rows of the answer of `kvcache size` as programs have them: a capacity of a policy in all tiers, of one
/// tier, or of several private caches.
///
/// - `ceilingHitRatio` is that with memory for everything, and `laterCeilingHitRatio` that of the second half of
///   the requests; `truncated` says that the trace is too short to show all reuse.
/// - `route` is by which requests get to private caches, empty for one cache; `busiestOverMean` has the prompt
///   tokens of the one that gets the most.
/// - `blocks` is null when no memory reaches the target. `hitRatio` is of all full blocks looked up, those found
///   in the tier.
/// - `ttftP50Seconds` is null where the trace does not say when requests came. Money is in the currency of
///   `--price`, and null without it.
record SizingRows(SizingResult answer) {

    private record Capacity(long blocks, long bytes, double hitRatio) {}

    /// One whose target is out of reach has one row without a capacity.
    List<Row> toRows() {
        List<Row> rows = new ArrayList<>();
        for (SizingResult.Row policy : answer.rows()) {
            double found = policy.tiers().stream()
                    .mapToDouble(SizingResult.Tier::hitRatio)
                    .sum();
            Capacity all = new Capacity(policy.blocks(), policy.bytes(), found);
            rows.add(row(policy.policy(), null, "all", all, null, policy.firstTokens(), null));
            for (SizingResult.Tier tier : policy.tiers()) {
                long blocks = policy.blocks() == 0 ? 0 : tier.bytes() / (policy.bytes() / policy.blocks());
                Capacity capacity = new Capacity(blocks, tier.bytes(), tier.hitRatio());
                rows.add(row(policy.policy(), null, tier.tier(), capacity, tier.millisABlock(), null, tier.money()));
            }
        }
        answer.fleets().forEach(fleet -> rows.addAll(fleetRows(fleet)));
        if (!answer.reachable()) {
            rows.add(row("lru", null, "all", null, null, null, null));
        }
        return rows;
    }

    /// Two rows: what private caches find with the memory of the shared one, and what they need to find as much.
    private List<Row> fleetRows(SizingResult.FleetRow fleet) {
        SizingResult.Row shared = answer.rows().getFirst();
        long blockBytes = shared.blocks() == 0 ? 0 : shared.bytes() / shared.blocks();
        long sameBlocks = (long) (shared.blocks() / fleet.instances()) * fleet.instances();
        Capacity same = new Capacity(sameBlocks, sameBlocks * blockBytes, fleet.sameMemoryHitRatio());
        Capacity needed =
                fleet.blocks() >= 0 ? new Capacity(fleet.blocks(), fleet.bytes(), answer.targetHitRatio()) : null;
        return List.of(
                row("lru", fleet, "all", same, null, null, null), row("lru", fleet, "all", needed, null, null, null));
    }

    private Row row(
            String policy,
            SizingResult.@Nullable FleetRow fleet,
            String tier,
            @Nullable Capacity capacity,
            @Nullable Double loadMillis,
            @Nullable FirstTokens firstTokens,
            @Nullable TierMoney money) {
        return new Row()
                .put("trace", answer.trace())
                .put("rule", "full-blocks")
                .put("model", answer.model())
                .put("blockTokens", answer.blockTokens())
                .put("targetHitRatio", answer.targetHitRatio())
                .put("ceilingHitRatio", fleet == null ? answer.ceiling() : fleet.ceiling())
                .put("laterCeilingHitRatio", answer.laterCeiling())
                .put("spanMinutes", answer.spanMinutes())
                .put("truncated", answer.truncated())
                .put("policy", policy)
                .put("instances", fleet == null ? 1 : fleet.instances())
                .put("route", fleet == null ? "" : fleet.route())
                .put("tier", tier)
                .put("blocks", capacity == null ? null : (Long) capacity.blocks)
                .put("bytes", capacity == null ? null : (Long) capacity.bytes)
                .put("hitRatio", capacity == null ? null : (Double) capacity.hitRatio)
                .put("loadMillisPerBlock", loadMillis)
                .put("ttftP50Seconds", firstTokens == null ? null : (Double) firstTokens.ttftP50Seconds())
                .put("ttftP99Seconds", firstTokens == null ? null : (Double) firstTokens.ttftP99Seconds())
                .put("busyShare", firstTokens == null ? null : (Double) firstTokens.busyShare())
                .put("busiestOverMean", fleet == null ? null : (Double) fleet.busiest())
                .put("costPerMonth", money == null ? null : (Double) money.cost())
                .put("gpuHoursSavedPerMonth", money == null ? null : (Double) money.gpuHoursSaved())
                .put("savedPerMonth", money == null ? null : (Double) money.saved())
                .put("gainPerMonth", money == null ? null : (Double) money.net());
    }
}
