package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.HitRatioCurves.SampledCurve;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import org.junit.jupiter.api.Test;

final class LruCurveTest {

    private static final int WARMUP = 100;

    private final PrefixForest forest = new PrefixForest(
            new TraceGenerator(Workload.mixed(), 3).generate("generated:3", 3000), BlockCountingRule.REFERENCE);
    private final LruCurve curve = new LruCurve(forest, WARMUP);

    @Test
    void givenRoomForTheLongestPrompt_whenCurveIsDrawn_thenItEqualsTheReplaysToTheLastHit() {
        int from = curve.minExactBlocks();
        for (int blocks : new int[] {from, from + 1, 2 * from, 1000, 3000, 8000, forest.nodeCount()}) {
            assertThat(curve.hits(blocks))
                    .as("LRU of %d blocks", blocks)
                    .isEqualTo(new PolicyReplay(PolicyKind.LRU)
                            .run(forest, blocks, WARMUP)
                            .blockHits());
        }
        assertThat(curve.ceiling()).isEqualTo(curve.hitRatio(forest.nodeCount()));
    }

    @Test
    void givenLessRoomThanTheLongestPrompt_whenCurveIsDrawn_thenItIsNear() {
        int blocks = curve.minExactBlocks() / 2;
        assertThat(curve.hitRatio(blocks))
                .isCloseTo(
                        new PolicyReplay(PolicyKind.LRU)
                                .run(forest, blocks, WARMUP)
                                .blockHitRatio(),
                        within(0.02));
    }

    @Test
    void givenSampleOfTheBlocks_whenCurveIsEstimated_thenTheReplaysLieWithinTheBounds() {
        for (long seed = 1; seed <= 20; seed++) {
            SampledCurve sampled = new SampledCurve(forest, WARMUP, 0.1, seed);
            for (int blocks : new int[] {500, 1000, 3000, 8000, forest.nodeCount()}) {
                SampledCurve.Estimate estimate = sampled.estimateAt(blocks);
                assertThat(curve.hitRatio(blocks))
                        .as("LRU of %d blocks, sample %d", blocks, seed)
                        .isBetween(estimate.low(), estimate.high());
                assertThat(estimate.hitRatio()).isBetween(estimate.low(), estimate.high());
            }
        }
    }

    @Test
    void givenLargerSample_whenCurveIsEstimated_thenTheBoundsAreNarrower() {
        SampledCurve.Estimate tenth = new SampledCurve(forest, WARMUP, 0.1, 1).estimateAt(3000);
        SampledCurve.Estimate half = new SampledCurve(forest, WARMUP, 0.5, 1).estimateAt(3000);
        assertThat(half.high() - half.low()).isLessThan((tenth.high() - tenth.low()) / 2);
        assertThat(tenth.high() - tenth.low()).isLessThan(0.2);
    }

    @Test
    void givenAllBlocksInTheSample_whenCurveIsEstimated_thenItIsTheExactOne() {
        SampledCurve all = new SampledCurve(forest, WARMUP, 1, 1);
        assertThat(all.sampledBlocks()).isEqualTo(forest.nodeCount());
        for (int blocks : new int[] {1, 1000, 8000}) {
            double exact = curve.hitRatio(blocks);
            assertThat(all.estimateAt(blocks).hitRatio()).isCloseTo(exact, within(1e-12));
            assertThat(all.estimateAt(blocks).low()).isCloseTo(exact, within(1e-12));
            assertThat(all.estimateAt(blocks).high()).isCloseTo(exact, within(1e-12));
        }
    }

    @Test
    void givenTarget_whenSized_thenTheLeastCapacityThatReachesIt() {
        double target = curve.ceiling() * 0.7;
        int blocks = curve.blocksFor(target);
        assertThat(curve.hitRatio(blocks)).isGreaterThanOrEqualTo(target);
        assertThat(curve.hitRatio(blocks - 1)).isLessThan(target);
        assertThat(curve.blocksFor(curve.ceiling() + 0.001)).isEqualTo(-1);
    }
}
