package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.baseline.Baseline;
import io.kvcache.planner.replay.ReplayCatalogue.CaffeineReplay;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What every policy finds of a generated trace, to all digits and without any published trace: a change to a policy,
/// to the replay or to the generator shows here first. [ReferenceValuesTest] has the published traces' values.
@Tag(Baseline.RECORDED_TAG)
final class GeneratedValuesTest {

    private static final int REQUESTS = 3_000;
    private static final int BLOCKS = 900;
    private static final PrefixForest FOREST = new PrefixForest(trace(), BlockCountingRule.REFERENCE);

    private static Trace trace() {
        return new TraceGenerator(Workload.mixed(), 1).generate("generated:1", REQUESTS);
    }

    @ParameterizedTest
    @CsvSource({
        "lru, 0.8243480475536434",
        "fifo, 0.8243480475536434",
        "lfu-da, 0.7903564704063162",
        "gdsf, 0.7948953510583141",
        "slru, 0.559355642674574",
        "s3-fifo, 0.5958667988611867",
        "sieve, 0.7702453178580849",
        "importance, 0.830560583596358",
        "vllm-queue, 0.8243480475536434",
        "mooncake, 0.7695904092269349",
        "lmcache-cost, 0.5562903064426636",
        "pgdsf, 0.7957503706600934",
        "marconi, 0.8243480475536434",
        "pensieve, 0.8203276362346392",
        "belady, 0.8820254868608955",
        "belady-bypass, 0.8829350821819373",
    })
    void givenAGeneratedTrace_whenReplayed_thenTheBlockHitRatioToAllDigits(String policy, double expected) {
        SimulatedCache replay = ReplayCatalogue.named(policy).orElseThrow();
        assertThat(replay.run(FOREST, BLOCKS, 0).blockHitRatio()).isEqualTo(expected);
    }

    /// Caffeine draws at random which of two equally popular entries it keeps.
    @Test
    void givenAGeneratedTrace_whenReplayedByCaffeine_thenAboutTheSameEachTime() {
        double ratio = new CaffeineReplay().run(FOREST, BLOCKS, 0).blockHitRatio();
        assertThat(ratio).isCloseTo(.731, within(.02));
    }

    @Test
    void givenTheCatalogue_whenCounted_thenEveryPolicyButCaffeinesHasAValueHere() throws NoSuchMethodException {
        String[] values = GeneratedValuesTest.class
                .getDeclaredMethod(
                        "givenAGeneratedTrace_whenReplayed_thenTheBlockHitRatioToAllDigits", String.class, double.class)
                .getAnnotation(CsvSource.class)
                .value();
        assertThat(values)
                .extracting(value -> value.substring(0, value.indexOf(',')))
                .containsExactlyElementsOf(ReplayCatalogue.all().stream()
                        .filter(replay -> !(replay instanceof CaffeineReplay))
                        .map(SimulatedCache::commandName)
                        .toList());
    }
}
