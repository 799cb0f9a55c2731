package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.PlacementSimulator.JoinRow;
import io.kvcache.planner.lab.PlacementSimulator.TraceRow;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PlacementSimulatorTest {

    private static final Trace GENERATED = new TraceGenerator(Workload.mixed(), 1).generate("generated:1", 1500);

    @ParameterizedTest
    @ValueSource(ints = {3_000, 10_000, 1_000_000})
    void givenOneNode_whenReplayed_thenItFindsWhatAnLruCacheFinds(int blocks) {
        PrefixForest forest = new PrefixForest(GENERATED, BlockCountingRule.FULL_BLOCKS);
        double lru = new PolicyReplay(PolicyKind.LRU).run(forest, blocks, 0).blockHitRatio();
        TraceRow row = new PlacementSimulator(GENERATED, blocks).replay(1);
        assertThat(row.hitRatio()).isCloseTo(lru, within(1e-9));
        assertThat(row.readBalance()).isEqualTo(1);
        assertThat(row.storedBalance()).isEqualTo(1);
        assertThat(row.serversPerRead()).isEqualTo(1);
    }

    @Test
    void givenRoomForAll_whenReplayedOverManyNodes_thenTheyFindWhatOneFinds() {
        PlacementSimulator simulator = new PlacementSimulator(GENERATED, 100_000_000);
        TraceRow row = simulator.replay(64);
        assertThat(row.hitRatio()).isEqualTo(simulator.replay(1).hitRatio());
        assertThat(row.serversPerRead()).isGreaterThan(1);
        assertThat(row.storedBalance()).isGreaterThan(1);
        assertThat(row.readBalance()).isGreaterThan(1);
    }

    /// The goals of the design: what placement costs beside one pool is little.
    @Test
    @Tag("slow")
    @Tag("traces")
    void givenThePublishedConversations_whenReplayed_thenManyNodesFindNearlyWhatOnePoolFinds() throws IOException {
        Optional<Path> file = new TraceFinder().find("conversation");
        assumeTrue(file.isPresent(), "the conversation trace is not here");
        Trace trace = new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}).read(file.orElseThrow());
        PlacementSimulator simulator = new PlacementSimulator(trace, 50_000);
        assertThat(simulator.replay(1).hitRatio()).isCloseTo(.3715, within(.0005));
        assertThat(simulator.replay(16).minHitRatio()).isGreaterThanOrEqualTo(.365);
        assertThat(simulator.replay(64).minHitRatio()).isGreaterThanOrEqualTo(.36);
    }

    @Tag("slow")
    @ParameterizedTest
    @ValueSource(ints = {2, 16})
    void givenAJoin_whenRanked_thenHardlyMoreThanItsShareOfTheGroupsMoves(int nodes) {
        JoinRow row = PlacementSimulator.join(nodes);
        assertThat(row.groupsMovedOverShare()).isBetween(0.95, 1.05);
        assertThat(row.groupBalance()).isBetween(1.0, 1.03);
        assertThat(row.slotBalance()).isBetween(1.0, 1.11);
    }
}
