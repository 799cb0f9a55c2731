package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.CapacityPlanner.CacheFleet;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult.TierMoney;
import io.kvcache.planner.lab.RequestRouter.RoutingPolicy;
import io.kvcache.planner.model.GpuProfile;
import io.kvcache.planner.model.ModelCatalogue;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayCatalogue;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.ToDoubleFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class CapacityPlannerTest {

    private static final ModelProfile LLAMA_8B =
            ModelCatalogue.named("llama-3-8b").orElseThrow();
    private static final ModelProfile LLAMA_70B =
            ModelCatalogue.named("llama-3-70b").orElseThrow();
    private static final GpuProfile H100 = GpuProfile.find("h100").orElseThrow();
    private static final CapacityPlanner.EngineConfig ENGINE =
            engineConfig(LLAMA_8B, H100, 1, 64L << 30, Optional.empty());

    private static CapacityPlanner.EngineConfig engineConfig(
            ModelProfile model, GpuProfile gpu, int gpus, long hostBytes, Optional<TierPrices> prices) {
        return new CapacityPlanner.EngineConfig(
                model,
                EngineHardware.of(gpu, model, gpus),
                gpus,
                CapacityPlanner.deviceBytes(model, gpu, gpus),
                hostBytes,
                prices);
    }

    private final Trace trace = new TraceGenerator(Workload.mixed(), 5).generate("generated:5", 3000);

    @Test
    void givenPrices_whenRead_thenTheyMayBeginWithAPoint() {
        assertThat(TierPrices.parse("gpu=2,host=.5,disk=0.1")).contains(new TierPrices(2, 0.5, 0.1));
        for (String wrong :
                List.of("gpu=2,host=.,disk=1", "gpu=2,host=,disk=1", "gpu=2,host=1", "gpu=-1,host=1,disk=1")) {
            assertThat(TierPrices.parse(wrong)).as(wrong).isEmpty();
        }
    }

    @Test
    void givenTarget_whenSized_thenTheTiersAddUpTheFastestFirst() {
        CapacityPlanner.EngineConfig small = engineConfig(LLAMA_70B, H100, 2, 16L << 30, Optional.empty());
        SizingResult.Row row =
                new CapacityPlanner(trace, small).plan(0.5, List.of()).rows().getFirst();
        assertThat(row.tiers()).extracting(SizingResult.Tier::tier).containsExactly("device", "host", "disk");
        assertThat(row.tiers().stream().mapToLong(SizingResult.Tier::bytes).sum())
                .isEqualTo(row.bytes());
        assertThat(row.tiers().getFirst().bytes()).isBetween(1L, H100.kvBytes(LLAMA_70B, 2));
        assertThat(row.tiers().get(1).bytes()).isBetween(15L << 30, 16L << 30);
        assertThat(row.tiers().get(2).bytes()).isPositive();
        assertThat(row.tiers().stream().mapToDouble(SizingResult.Tier::hitRatio).sum())
                .isCloseTo(0.5, within(0.001));
        assertThat(row.tiers().get(1).millisABlock())
                .isLessThan(row.tiers().get(2).millisABlock());
    }

    @Test
    void givenPrices_whenSized_thenEachTiersCostAndWhatItsHitsWouldHaveTaken() {
        Trace few = trace.firstRequests(1000);
        TierPrices prices = TierPrices.parse("gpu=2,host=3,disk=0.1").orElseThrow();
        CapacityPlanner.EngineConfig priced = engineConfig(LLAMA_70B, H100, 2, 16L << 30, Optional.of(prices));
        SizingResult answer = new CapacityPlanner(few, priced).plan(0.5, List.of());
        assertThat(answer.rows()).hasSize(2);
        for (SizingResult.Row row : answer.rows()) {
            double cost = 3.0 * row.tiers().get(1).bytes() / (1L << 30)
                    + 0.1 * row.tiers().get(2).bytes() / (1L << 30);
            double gpuHours = gpuHoursAMonth(few, row);
            assertThat(sum(row, TierMoney::cost)).isCloseTo(cost, withinPercentage(1e-6));
            assertThat(sum(row, TierMoney::gpuHoursSaved)).isCloseTo(gpuHours, withinPercentage(1e-6));
            assertThat(sum(row, TierMoney::saved)).isCloseTo(2 * gpuHours, withinPercentage(1e-6));
            assertThat(sum(row, TierMoney::net)).isCloseTo(2 * gpuHours - cost, withinPercentage(1e-6));
            assertThat(row.tiers()).allMatch(tier -> money(tier).gpuHoursSaved() > 0);
            assertThat(money(row.tiers().getFirst()).cost()).isZero();
        }
    }

    private static double sum(SizingResult.Row row, ToDoubleFunction<TierMoney> part) {
        return row.tiers().stream()
                .mapToDouble(tier -> part.applyAsDouble(money(tier)))
                .sum();
    }

    private static TierMoney money(SizingResult.Tier tier) {
        return Objects.requireNonNull(tier.money());
    }

    /// By the hits of one replay, request by request.
    private static double gpuHoursAMonth(Trace trace, SizingResult.Row row) {
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        PrefillCost cost = LLAMA_70B.prefillCost(0.5 * 989e12);
        double[] seconds = {0};
        PolicyKind policy = PolicyKind.valueOf(row.policy().toUpperCase(Locale.ROOT));
        new PolicyReplay(policy).run(forest, row.blocks(), new HitCounter(forest, 0, new ReplayListener() {
            @Override
            public void onFound(int request, int blocks) {
                seconds[0] += cost.seconds(0, (long) blocks * trace.blockTokens());
            }
        }));
        double hours = (trace.requests().getLast().timestampMillis()
                        - trace.requests().getFirst().timestampMillis())
                / 3.6e6;
        return seconds[0] / 3600 / hours * 730;
    }

    @Test
    void givenAllInOneTier_whenSized_thenTimesToTheFirstTokenAreThoseOfTheLaboratory() {
        Trace few = trace.firstRequests(1000);
        CapacityPlanner.EngineConfig host =
                new CapacityPlanner.EngineConfig(LLAMA_8B, ENGINE.hardware(), 1, 0, 1L << 50, Optional.empty());
        for (SizingResult.Row row :
                new CapacityPlanner(few, host).plan(0.4, List.of()).rows()) {
            List<ResultRow> rows = new ArrayList<>();
            PolicyComparison comparison =
                    new PolicyComparison(few, ENGINE.hardware(), BlockCountingRule.FULL_BLOCKS, 0);
            double share = (double) row.blocks() / comparison.blocks(1);
            comparison.run(List.of(ReplayCatalogue.named(row.policy()).orElseThrow()), List.of(share), rows::add);
            assertThat(rows.getFirst().number("blocks")).isEqualTo(row.blocks());
            SizingResult.FirstTokens firstTokens = Objects.requireNonNull(row.firstTokens());
            assertThat(firstTokens.ttftP50Seconds()).isEqualTo(rows.getFirst().number("ttftP50Seconds"));
            assertThat(firstTokens.ttftP99Seconds()).isEqualTo(rows.getFirst().number("ttftP99Seconds"));
            assertThat(firstTokens.busyShare()).isPositive();
        }
    }

    @Test
    void givenFasterTiers_whenSized_thenFirstTokensComeNoLater() {
        CapacityPlanner.EngineConfig slow =
                new CapacityPlanner.EngineConfig(LLAMA_70B, ENGINE.hardware(), 1, 0, 0, Optional.empty());
        CapacityPlanner.EngineConfig fast =
                new CapacityPlanner.EngineConfig(LLAMA_70B, ENGINE.hardware(), 1, 1L << 50, 0, Optional.empty());
        assertThat(p50(fast)).isLessThan(p50(slow));
    }

    private double p50(CapacityPlanner.EngineConfig engine) {
        SizingResult.Row row =
                new CapacityPlanner(trace, engine).plan(0.4, List.of()).rows().getFirst();
        return Objects.requireNonNull(row.firstTokens()).ttftP50Seconds();
    }

    @Test
    void givenPricesAndNoTimestamps_whenPlanned_thenAnErrorSaysWhy() {
        Trace atOnce = new Trace(
                "atonce",
                trace.requests().stream()
                        .map(each -> new TraceRequest(0, each.inputTokens(), 1, each.hashIds()))
                        .toList());
        CapacityPlanner.EngineConfig priced =
                engineConfig(LLAMA_8B, H100, 1, 1, TierPrices.parse("gpu=1,host=1,disk=1"));
        CapacityPlanner.EngineConfig free = engineConfig(LLAMA_8B, H100, 1, 1, Optional.empty());
        assertThat(new CapacityPlanner(atOnce, free).plan(0.1, List.of()).rows())
                .extracting(SizingResult.Row::firstTokens)
                .containsOnlyNulls();
        assertThatThrownBy(() -> new CapacityPlanner(atOnce, priced))
                .hasMessageContaining("--price is given, must be: absent for atonce");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "gpu=1",
                "gpu=1,host=1,disk=-1",
                "gpu=1,host=1,disk=1,tape=1",
                "gpu=1,host=1,host=1,disk=1",
                "gpu=1,host=NaN,disk=1",
                "gpu=1000001,host=1,disk=1"
            })
    void givenIncompletePrices_whenParsed_thenEmpty(String text) {
        assertThat(TierPrices.parse(text)).isEmpty();
    }

    @Test
    void givenTargetAboveTheCeiling_whenSized_thenNoRowAndTheCeiling() {
        SizingResult answer = new CapacityPlanner(trace, ENGINE)
                .plan(1, List.of(new CapacityPlanner.FleetConfig(2, RoutingPolicy.RANDOM, 1)));
        assertThat(answer.reachable()).isFalse();
        assertThat(answer.rows()).isEmpty();
        assertThat(answer.fleets()).isEmpty();
        assertThat(answer.ceiling()).isBetween(0.3, 0.99);
    }

    @Test
    void givenWeightsThatDoNotFit_whenEngineIsChosen_thenTheErrorSaysSo() {
        assertThatThrownBy(() -> CapacityPlanner.deviceBytes(LLAMA_70B, H100, 1))
                .hasMessageContaining("--gpus is '1'")
                .hasMessageContaining("llama-3-70b");
        assertThat(H100.kvBytes(LLAMA_70B, 2)).isPositive();
    }

    @ParameterizedTest
    @EnumSource
    void givenInstances_whenRouted_thenEveryRequestOnceAndNoneIdle(RoutingPolicy routingPolicy) {
        List<Trace> parts = new RequestRouter(trace, 4).split(routingPolicy, 7);
        List<TraceRequest> all = new ArrayList<>();
        parts.forEach(part -> all.addAll(part.requests()));
        assertThat(all).hasSize(3000).containsAll(trace.requests());
        assertThat(parts).allMatch(part -> part.requests().size() > 300);
        assertThat(new CacheFleet(trace, 4, routingPolicy, 7).maxLoadRatio()).isBetween(1.0, 2.0);
    }

    @Test
    void givenPrivateCaches_whenCompared_thenTheSharedOneFindsMostAndRandomLeast() {
        double shared = new LruCurve(new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS), 0).hitRatio(8000);
        double random = new CacheFleet(trace, 4, RoutingPolicy.RANDOM, 1).hitRatio(2000);
        double session = new CacheFleet(trace, 4, RoutingPolicy.SESSION, 1).hitRatio(2000);
        double prefix = new CacheFleet(trace, 4, RoutingPolicy.PREFIX, 1).hitRatio(2000);
        assertThat(session).isBetween(random + 0.1, shared);
        assertThat(prefix).isBetween(random + 0.1, shared);
    }

    @Test
    void givenOneInstance_whenCompared_thenItIsTheSharedOne() {
        LruCurve shared = new LruCurve(new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS), 0);
        CacheFleet fleet = new CacheFleet(trace, 1, RoutingPolicy.PREFIX, 1);
        assertThat(fleet.hitRatio(2000)).isEqualTo(shared.hitRatio(2000));
        assertThat(fleet.blocksPerInstanceFor(0.3)).isEqualTo(shared.blocksFor(0.3));
        assertThat(fleet.blocksPerInstanceFor(fleet.ceiling() + 0.01)).isEqualTo(-1);
    }

    @Test
    void givenSessionsThatTheTraceNames_whenInferredFromItsBlocks_thenNearlyAllThoseOfTwoBlocksAndMoreAreFound() {
        long[] named = forest(trace).sessions();
        long[] inferred = forest(trace).inferredSessions();
        int pairs = 0;
        int found = 0;
        for (int i = 0; i < named.length; i++) {
            for (int j = Math.max(0, i - 200); j < i; j++) {
                boolean grown = length(j) >= 8 && length(i) > length(j);
                if (named[i] == named[j] && grown) {
                    pairs++;
                    found += inferred[i] == inferred[j] ? 1 : 0;
                }
            }
        }
        assertThat(pairs).isGreaterThan(500);
        assertThat((double) found / pairs).isGreaterThan(0.9);
    }

    @Test
    void givenPromptThatGrowsAndOneThatBranches_whenInferred_thenOnlyTheFirstGoesOn() {
        Trace handMade = new Trace(
                "hand-made", List.of(request(1, 2, 3), request(1, 2, 3, 4), request(1, 2, 9), request(1, 2, 3, 4, 5)));
        assertThat(forest(handMade).sessions()).containsExactly(0, 0, 2, 0);
    }

    @Test
    void givenTraceWhoseSecondHalfRepeatsTheFirst_whenSized_thenItIsTooShort() {
        List<TraceRequest> requests = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            requests.add(request(2 * (i % 100) + 1, 2 * (i % 100) + 2));
        }
        SizingResult answer = new CapacityPlanner(new Trace("twice", requests), ENGINE).plan(0.4, List.of());
        assertThat(answer.ceiling()).isEqualTo(0.5);
        assertThat(answer.laterCeiling()).isEqualTo(1);
        assertThat(answer.truncated()).isTrue();
    }

    private static PrefixForest forest(Trace of) {
        return new PrefixForest(of, BlockCountingRule.FULL_BLOCKS);
    }

    private int length(int request) {
        return trace.requests().get(request).hashIds().length;
    }

    private static TraceRequest request(int... ids) {
        return new TraceRequest(
                0,
                ids.length * Trace.BLOCK_TOKENS,
                1,
                LongStream.range(0, ids.length).map(i -> ids[(int) i]).toArray());
    }
}
