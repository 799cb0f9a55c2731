package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.ScoredReplay.CostAwareReplay;
import io.kvcache.planner.replay.ScoredReplay.MarconiReplay;
import io.kvcache.planner.replay.ScoredReplay.PensieveReplay;
import io.kvcache.planner.replay.ScoredReplay.PgdsfReplay;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What other systems do, each by an example that can be worked out by hand.
final class ExternalPoliciesReplayTest {

    private static final Workload.SessionKind CHAT = new Workload.SessionKind(4, 60_000, 700, 500);
    private static final Workload SMALL = new Workload(5, 1500, 1, 0.2, CHAT, CHAT, 5000, 12_000);
    private static final Trace GENERATED = new TraceGenerator(SMALL, 6).generate("generated:6", 2000);

    static Stream<SimulatedCache> others() {
        return Stream.of(
                new VllmQueueReplay(),
                new MooncakeReplay(),
                new CostAwareReplay(),
                new PgdsfReplay(),
                new MarconiReplay(),
                new PensieveReplay());
    }

    @ParameterizedTest
    @MethodSource("others")
    void givenAnyCapacity_whenReplayed_thenBetweenNothingAndBelady(SimulatedCache replay) {
        PrefixForest forest = new PrefixForest(GENERATED, BlockCountingRule.REFERENCE);
        for (int blocks : new int[] {50, 300, 2000}) {
            double bound = new BeladyReplay(true).run(forest, blocks, 0).blockHitRatio();
            assertThat(replay.run(forest, blocks, 0).blockHitRatio())
                    .as("%s at %d", replay.commandName(), blocks)
                    .isPositive()
                    .isLessThanOrEqualTo(bound);
        }
        double ideal = 1 - (double) forest.nodeCount() / GENERATED.totals().blockAccesses();
        assertThat(replay.run(forest, 2 * forest.nodeCount(), 0).blockHitRatio())
                .isCloseTo(ideal, within(1e-9));
        assertThat(ReplayCatalogue.named(replay.commandName())).contains(replay);
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 20, 300, 2000})
    void givenVllmsQueue_whenReplayed_thenItIsLru(int blocks) {
        PrefixForest forest = new PrefixForest(GENERATED, BlockCountingRule.REFERENCE);
        assertThat(new VllmQueueReplay().run(forest, blocks, 10))
                .isEqualTo(new PolicyReplay(PolicyKind.LRU).run(forest, blocks, 10));
    }

    /// Room for 20, so more than 18 are too many. The 20th block finds 19: of the 18 whose lease has
    /// ended a twentieth goes, and as much more as 19 of 20 are above nine tenths, 1.8, so the two that
    /// were put first. The very first is leased, for it was just read.
    @Test
    void givenMooncakesStore_whenNineTenthsAreTaken_thenTheOldestEndedLeasesGo() {
        List<TraceRequest> requests = new ArrayList<>();
        for (int i = 0; i < 19; i++) {
            requests.add(request(1000L * i, i));
        }
        requests.add(request(19_000, 0));
        requests.add(request(20_000, 19));
        assertThat(hits(new MooncakeReplay(), 20, with(requests, request(20_000, 3), request(20_000, 0))))
                .isEqualTo(3);
        assertThat(hits(new MooncakeReplay(), 20, with(requests, request(20_000, 1), request(20_000, 2))))
                .isEqualTo(1);
        assertThat(hits(new PolicyReplay(PolicyKind.LRU), 20, with(requests, request(20_000, 1), request(20_000, 2))))
                .isEqualTo(3);
    }

    /// At two minutes block 1 is worth 1,024 / 3, block 2 is worth 512 / 3, and block 3, a minute old,
    /// 512 / 2: so 2 and 3 go, where LRU takes 2 and 1.
    @Test
    void givenLmcachesScore_whenRoomIsNeeded_thenTheCheapestForItsAgeGoes() {
        List<TraceRequest> requests = List.of(request(0, 1, 2), request(60_000, 3), request(120_000, 4, 5));
        assertThat(hits(new CostAwareReplay(), 3, with(requests, request(120_000, 1))))
                .isEqualTo(1);
        assertThat(hits(new CostAwareReplay(), 3, with(requests, request(120_000, 3))))
                .isZero();
        assertThat(hits(new PolicyReplay(PolicyKind.LRU), 3, with(requests, request(120_000, 3))))
                .isEqualTo(1);
    }

    /// In units of one block's cost, with room for two: 1 is put and found (2), 2 is put (1) and goes for
    /// 3 (clock 1, so 2), 1 is found again (1 + 3), 4 takes the place of 3 (clock 2, so 3), 5 that of 4
    /// (clock 3, so 4), and now 1 and 5 are worth the same, and 1 is older.
    @Test
    void givenPgdsf_whenRoomIsNeeded_thenFrequencyCountsAndTheClockOvertakesIt() {
        List<TraceRequest> requests =
                Stream.of(1, 1, 2, 3, 1, 4, 5).map(id -> request(0, id)).toList();
        assertThat(hits(new PgdsfReplay(), 2, requests)).isEqualTo(2);
        assertThat(hits(new PgdsfReplay(), 2, with(requests, request(0, 1)))).isEqualTo(3);
        assertThat(hits(new PgdsfReplay(), 2, with(requests, request(0, 6), request(0, 1))))
                .isEqualTo(2);
    }

    /// Eight blocks at once take longer a token than one, because of attention, so the one goes though it
    /// is younger.
    @Test
    void givenPgdsf_whenRoomIsNeeded_thenWhatTookLongerATokenStays() {
        int[] prompt = {11, 12, 13, 14, 15, 16, 17, 18};
        List<TraceRequest> requests = List.of(request(0, prompt), request(0, 1), request(0, 2), request(0, prompt));
        assertThat(hits(new PgdsfReplay(), 9, requests)).isEqualTo(8);
        assertThat(hits(new PolicyReplay(PolicyKind.LRU), 9, requests)).isEqualTo(7);
    }

    /// When 8 comes, block 3 is the older leaf (recency 0) and the deeper (efficiency 1), block 9 the
    /// other way round: with α 2 they are worth 2 and 1, with 0 they are worth 0 and 1.
    @Test
    void givenMarconisScore_whenRoomIsNeeded_thenDepthCountsAlphaTimes() {
        List<TraceRequest> requests = List.of(request(0, 1, 2, 3), request(0, 9), request(0, 8), request(0, 1, 2, 3));
        assertThat(hits(new MarconiReplay(OptionalDouble.of(2)), 4, requests)).isEqualTo(3);
        assertThat(hits(new MarconiReplay(OptionalDouble.of(0)), 4, requests)).isEqualTo(2);
    }

    @Test
    void givenPromptsThatReturnAmongOthersThatDoNot_whenMarconiHasSeenSome_thenAlphaIsChosenAboveZero() {
        List<TraceRequest> requests = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            requests.add(request(0, 1, 2, 3, 4, 5, 6));
            for (int j = 0; j < 5; j++) {
                requests.add(request(0, 100 + 5 * i + j));
            }
        }
        long chosen = hits(new MarconiReplay(), 8, requests);
        long byRecency = hits(new MarconiReplay(OptionalDouble.of(0)), 8, requests);
        assertThat((double) chosen).isGreaterThan(1.5 * byRecency);
    }

    /// The blocks of a prompt are idle for as long as each other, so the first, the cheapest to compute,
    /// goes; the other two are found all the same.
    @Test
    void givenPensievesValue_whenRoomIsNeeded_thenTheLeadingBlockGoesAndTheRestIsFound() {
        List<TraceRequest> requests = List.of(request(0, 1, 2, 3), request(10_000, 4));
        assertThat(hits(new PensieveReplay(), 3, with(requests, request(11_000, 1))))
                .isZero();
        assertThat(hits(new PolicyReplay(PolicyKind.LRU), 3, with(requests, request(11_000, 1))))
                .isEqualTo(1);
        assertThat(hits(new PensieveReplay(), 3, with(requests, request(20_000, 1, 2, 3))))
                .isEqualTo(2);
    }

    private static long hits(SimulatedCache replay, int blocks, List<TraceRequest> requests) {
        PrefixForest forest = new PrefixForest(new Trace("hand-made", requests), BlockCountingRule.REFERENCE);
        return replay.run(forest, blocks, 0).blockHits();
    }

    private static List<TraceRequest> with(List<TraceRequest> requests, TraceRequest... more) {
        return Stream.concat(requests.stream(), Arrays.stream(more)).toList();
    }

    private static TraceRequest request(long millis, int... ids) {
        return new TraceRequest(
                millis,
                ids.length * Trace.BLOCK_TOKENS,
                1,
                Arrays.stream(ids).asLongStream().toArray());
    }
}
