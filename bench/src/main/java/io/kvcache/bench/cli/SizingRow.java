package io.kvcache.bench.cli;

import io.kvcache.bench.lab.CapacityPlanner.SizingResult;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult.FirstTokens;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult.TierMoney;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One capacity of the answer of `kvcache size`: of a policy in all tiers, of one tier, or of several private
/// caches.
///
/// @param ceilingHitRatio with memory for everything
/// @param laterCeilingHitRatio the same of the second half of the requests
/// @param truncated whether the trace is too short to show all reuse
/// @param route by which requests get to private caches; empty for one cache
/// @param tier `all`, or device, host or disk
/// @param blocks in it, null when no memory reaches the target
/// @param hitRatio of all full blocks looked up, those found in it
/// @param loadMillisPerBlock to bring a block to the device
/// @param ttftP50Seconds until the first token, of all tiers; null where the trace does not say when requests came
/// @param busyShare of the trace's time, in which the engine works
/// @param busiestOverMean prompt tokens of the private cache that gets the most, over the mean
/// @param costPerMonth of the tier, as this and the other money in the currency of `--price`; null without it
/// @param gpuHoursSavedPerMonth of prefill
/// @param savedPerMonth what these cost
/// @param gainPerMonth what is left of that after the tier's cost
record SizingRow(
        String trace,
        String rule,
        String model,
        int blockTokens,
        double targetHitRatio,
        double ceilingHitRatio,
        double laterCeilingHitRatio,
        double spanMinutes,
        boolean truncated,
        String policy,
        int instances,
        String route,
        String tier,
        @Nullable Long blocks,
        @Nullable Long bytes,
        @Nullable Double hitRatio,
        @Nullable Double loadMillisPerBlock,
        @Nullable Double ttftP50Seconds,
        @Nullable Double ttftP99Seconds,
        @Nullable Double busyShare,
        @Nullable Double busiestOverMean,
        @Nullable Double costPerMonth,
        @Nullable Double gpuHoursSavedPerMonth,
        @Nullable Double savedPerMonth,
        @Nullable Double gainPerMonth) {

    private record Capacity(long blocks, long bytes, double hitRatio) {}

    /// Returns the rows of an answer. One whose target is out of reach has one row without a capacity.
    static List<SizingRow> of(SizingResult answer) {
        List<SizingRow> rows = new ArrayList<>();
        for (SizingResult.Row policy : answer.rows()) {
            double found = policy.tiers().stream()
                    .mapToDouble(SizingResult.Tier::hitRatio)
                    .sum();
            rows.add(row(
                            answer,
                            policy.policy(),
                            "all",
                            new Capacity(policy.blocks(), policy.bytes(), found),
                            null,
                            null)
                    .withFirstTokens(policy.firstTokens()));
            for (SizingResult.Tier tier : policy.tiers()) {
                long blocks = policy.blocks() == 0 ? 0 : tier.bytes() / (policy.bytes() / policy.blocks());
                Capacity capacity = new Capacity(blocks, tier.bytes(), tier.hitRatio());
                rows.add(row(answer, policy.policy(), tier.tier(), capacity, tier.millisABlock(), tier.money()));
            }
        }
        answer.fleets().forEach(fleet -> addFleet(answer, fleet, rows));
        if (!answer.reachable()) {
            rows.add(row(answer, "lru", "all", null, null, null));
        }
        return rows;
    }

    private static SizingRow row(
            SizingResult answer,
            String policy,
            String tier,
            @Nullable Capacity capacity,
            @Nullable Double loadMillis,
            @Nullable TierMoney money) {
        return new SizingRow(
                answer.trace(),
                "full-blocks",
                answer.model(),
                answer.blockTokens(),
                answer.targetHitRatio(),
                answer.ceiling(),
                answer.laterCeiling(),
                answer.spanMinutes(),
                answer.truncated(),
                policy,
                1,
                "",
                tier,
                capacity == null ? null : (Long) capacity.blocks,
                capacity == null ? null : (Long) capacity.bytes,
                capacity == null ? null : (Double) capacity.hitRatio,
                loadMillis,
                null,
                null,
                null,
                null,
                money == null ? null : (Double) money.cost(),
                money == null ? null : (Double) money.gpuHoursSaved(),
                money == null ? null : (Double) money.saved(),
                money == null ? null : (Double) money.net());
    }

    private SizingRow withFirstTokens(@Nullable FirstTokens firstTokens) {
        return new SizingRow(
                trace,
                rule,
                model,
                blockTokens,
                targetHitRatio,
                ceilingHitRatio,
                laterCeilingHitRatio,
                spanMinutes,
                truncated,
                policy,
                instances,
                route,
                tier,
                blocks,
                bytes,
                hitRatio,
                loadMillisPerBlock,
                firstTokens == null ? null : (Double) firstTokens.ttftP50Seconds(),
                firstTokens == null ? null : (Double) firstTokens.ttftP99Seconds(),
                firstTokens == null ? null : (Double) firstTokens.busyShare(),
                busiestOverMean,
                costPerMonth,
                gpuHoursSavedPerMonth,
                savedPerMonth,
                gainPerMonth);
    }

    /// Two rows: what private caches find with the memory of the shared one, and what they need to find as much.
    private static void addFleet(SizingResult answer, SizingResult.FleetRow fleet, List<SizingRow> rows) {
        SizingResult.Row shared = answer.rows().getFirst();
        long blockBytes = shared.blocks() == 0 ? 0 : shared.bytes() / shared.blocks();
        long sameBlocks = (long) (shared.blocks() / fleet.instances()) * fleet.instances();
        rows.add(row(answer, fleet, new Capacity(sameBlocks, sameBlocks * blockBytes, fleet.sameMemoryHitRatio())));
        boolean enough = fleet.blocks() >= 0;
        rows.add(row(
                answer, fleet, enough ? new Capacity(fleet.blocks(), fleet.bytes(), answer.targetHitRatio()) : null));
    }

    private static SizingRow row(SizingResult answer, SizingResult.FleetRow fleet, @Nullable Capacity capacity) {
        SizingRow one = row(answer, "lru", "all", capacity, null, null);
        return new SizingRow(
                one.trace,
                one.rule,
                one.model,
                one.blockTokens,
                one.targetHitRatio,
                fleet.ceiling(),
                one.laterCeilingHitRatio,
                one.spanMinutes,
                one.truncated,
                one.policy,
                fleet.instances(),
                fleet.route(),
                one.tier,
                one.blocks,
                one.bytes,
                one.hitRatio,
                null,
                null,
                null,
                null,
                fleet.busiest(),
                null,
                null,
                null,
                null);
    }
}
