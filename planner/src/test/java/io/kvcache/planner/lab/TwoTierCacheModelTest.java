package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.lab.TierComparison.TwoTierCacheModel;
import io.kvcache.planner.lab.TierComparison.TwoTierCacheModel.TierOptimalityGap;
import io.kvcache.planner.model.GpuProfile;
import io.kvcache.planner.model.ModelCatalogue;
import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.MooncakeReplay;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayCatalogue;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Two tiers without blocks, beside what can be worked out by hand and what the store does.
@Tag("slow")
final class TwoTierCacheModelTest {

    private static final EngineHardware H100 = EngineHardware.of(
            GpuProfile.find("h100").orElseThrow(),
            ModelCatalogue.named("llama-3-8b").orElseThrow(),
            4);

    /// Four prompts of one block each, in host memory for one and on a disk for two: the block that
    /// comes back third is on disk alone, and the one that comes back fifth has left both.
    @Test
    void givenFiveRequests_whenModelled_thenEachBlockIsWhereItMustBe() {
        Trace trace = new Trace("five", List.of(one(0, 1), one(1, 2), one(2, 1), one(3, 3), one(4, 2)));
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        EngineFeed engineFeed = new EngineFeed(trace, H100, 0);
        TwoTierCacheModel.TierOutcome outcome = new TwoTierCacheModel(forest, 1, 2)
                .run(new PolicyReplay(PolicyKind.LRU), TierOptimalityGap.of(forest, 1, 2), engineFeed);
        assertThat(outcome.found().totals().blockHits()).isEqualTo(1);
        assertThat(outcome.found().hostHits()).isZero();
        assertThat(outcome.put()).isEqualTo(4);
        assertThat(outcome.written()).isEqualTo(4);
        assertThat(outcome.found().hostOccupancy()).isEqualTo(1);
        assertThat(outcome.found().diskOccupancy()).isCloseTo(0.9, within(1e-9));
        assertThat(engineFeed.summary().hostBytesRead()).isZero();
        assertThat(engineFeed.summary().diskBytesRead()).isEqualTo(512 * H100.bytesPerToken());
    }

    @Test
    void givenEveryCache_whenModelled_thenTheDiskAddsHitsAndNoneExceedsTheBound() {
        Trace trace = new TraceGenerator(Workload.mixed(), 3).generate("generated:3", 2000);
        TierComparison laboratory = new TierComparison(trace, H100, Path.of("unused"));
        TierComparison.TierShares shares = new TierComparison.TierShares(0, 0.02, 0.2);
        for (SimulatedCache policy : ReplayCatalogue.all()) {
            ResultRow row = laboratory.runModel(policy, shares);
            assertThat(row.number("blockHitRatio")).as(row.text("policy")).isGreaterThan(row.number("hostHitRatio"));
            assertThat(row.number("gapClosed")).as(row.text("policy")).isLessThanOrEqualTo(1 + 1e-9);
            assertThat(row.number("hostOccupancy")).as(row.text("policy")).isBetween(0.5, 1.0);
            assertThat(row.number("savedLessLoadingSeconds"))
                    .isEqualTo(row.number("prefillSecondsSaved") - row.number("loadSeconds"));
            assertThat(row.number("ttftP99Seconds")).isGreaterThanOrEqualTo(row.number("ttftP50Seconds"));
        }
        assertThat(laboratory.runModel(new BeladyReplay(true), shares).number("gapClosed"))
                .isCloseTo(1, within(1e-9));
        assertThat(laboratory.runModel(new PolicyReplay(PolicyKind.LRU), shares).number("gapClosed"))
                .isCloseTo(0, within(1e-9));
        assertThat(laboratory.runModel(new MooncakeReplay(), shares).text("run"))
                .isEqualTo("model");
    }

    @Test
    void givenLruAndWritingAll_whenModelledAndDone_thenTheStoreFindsNearlyTheSame(@TempDir Path folder)
            throws IOException {
        Trace trace = new TraceGenerator(Workload.mixed(), 7).generate("generated:7", 150);
        TierComparison laboratory = new TierComparison(trace, H100, folder.resolve("disk"));
        TierComparison.TierShares shares = new TierComparison.TierShares(0, 0.2, 0.6);
        ResultRow store = laboratory.run(PolicyKind.LRU, AdmissionKind.ALWAYS, shares);
        ResultRow model = laboratory.runModel(new PolicyReplay(PolicyKind.LRU), shares);
        assertThat(model.number("hostBlocks")).isEqualTo(store.number("hostBlocks"));
        assertThat(store.number("blockHitRatio")).isCloseTo(model.number("blockHitRatio"), within(0.02));
        assertThat(store.number("hostHitRatio")).isCloseTo(model.number("hostHitRatio"), within(0.02));
        assertThat(store.number("hostOccupancy")).isCloseTo(model.number("hostOccupancy"), within(0.05));
        assertThat(store.number("diskOccupancy")).isCloseTo(model.number("diskOccupancy"), within(0.15));
        assertThat(store.number("wrongBlocks")).isZero();
    }

    @Test
    void givenADevice_whenReplayed_thenItsBlocksAreRightAndNotMoved(@TempDir Path folder) throws IOException {
        Trace trace = new TraceGenerator(Workload.mixed(), 7).generate("generated:7", 150);
        TierComparison laboratory = new TierComparison(trace, H100, folder.resolve("disk"));
        ResultRow without =
                laboratory.run(PolicyKind.LRU, AdmissionKind.ALWAYS, new TierComparison.TierShares(0, 0.2, 0.6));
        ResultRow with =
                laboratory.run(PolicyKind.LRU, AdmissionKind.ALWAYS, new TierComparison.TierShares(0.1, 0.2, 0.6));
        assertThat(without.number("deviceHitRatio")).isZero();
        assertThat(with.number("deviceHitRatio")).isPositive();
        assertThat(with.number("deviceHitRatio") + with.number("hostHitRatio"))
                .isLessThanOrEqualTo(with.number("blockHitRatio") + 1e-9);
        assertThat(with.number("blockHitRatio")).isCloseTo(without.number("blockHitRatio"), within(0.02));
        assertThat(with.number("loadSeconds")).isLessThan(without.number("loadSeconds"));
        assertThat(with.number("wrongBlocks")).isZero();
    }

    private static TraceRequest one(long second, long id) {
        return new TraceRequest(1000 * second, 513, 1, new long[] {id, 100 + id});
    }
}
