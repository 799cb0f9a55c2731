package io.kvcache.bench.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.TraceGenerator;
import io.kvcache.bench.trace.Workload;
import io.kvcache.core.policy.PolicyKind;
import org.junit.jupiter.api.Test;

final class LruCurveTest {

    private final TraceForest forest = new TraceForest(
            new TraceGenerator(Workload.mixed(), 3).generate("generated:3", 3000), ReplayRule.REFERENCE);
    private final LruCurve curve = new LruCurve(forest, 100);

    @Test
    void givenGeneratedTrace_whenCurveIsDrawn_thenItGoesThroughTheReplays() {
        PolicyReplay lru = new PolicyReplay(PolicyKind.LRU);
        for (int blocks : new int[] {1000, 3000, 8000, forest.nodes()}) {
            assertThat(curve.hitRatio(blocks))
                    .as("LRU of %d blocks", blocks)
                    .isCloseTo(lru.run(forest, blocks, 100).blockHitRatio(), within(0.002));
        }
        assertThat(curve.ceiling()).isEqualTo(curve.hitRatio(forest.nodes()));
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
