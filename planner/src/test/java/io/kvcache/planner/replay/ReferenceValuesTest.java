package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.baseline.PolicyParameter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The published values of the two Mooncake traces. Without the traces these tests are skipped, with a printed
/// word, and [SimulatedCacheTest] compares with naive models on generated traces instead.
@Tag("traces")
final class ReferenceValuesTest {

    private static final int UNLIMITED = 200_000;
    private static final Map<String, PrefixForest> FORESTS = new HashMap<>();

    @ParameterizedTest
    @CsvSource({
        "conversation, 1000, .0445, .1792, .1907",
        "conversation, 5000, .1118, .3397, .3412",
        "conversation, 10000, .2116, , .3664",
        "conversation, 20000, .2878, , .3664",
        "conversation, 50000, .3546, , .3664",
        "conversation, 200000, .3664, .3664, .3664",
        "synthetic, 1000, .0841, , ",
        "synthetic, 5000, .2793, , .5263",
        "synthetic, 10000, .4239, , .6180",
        "synthetic, 20000, .5718, , ",
        "synthetic, 200000, .6396, .6396, .6396",
    })
    void givenPublishedTrace_whenReplayed_thenLruAndBeladyToFourDigits(
            String trace, int blocks, double lru, Double belady, Double bypass) {
        PrefixForest forest = forest(trace);
        assertThat(ratio(new PolicyReplay(PolicyKind.LRU), forest, blocks)).isEqualTo(lru);
        if (belady != null) {
            assertThat(ratio(new BeladyReplay(false), forest, blocks)).isEqualTo(belady);
        }
        if (bypass != null) {
            assertThat(ratio(new BeladyReplay(true), forest, blocks)).isEqualTo(bypass);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "conversation, 1000, .0571",
        "conversation, 5000, .1493",
        "conversation, 10000, .2328",
        "conversation, 20000, .2986",
        "conversation, 50000, .3499",
        "conversation, 200000, .3664",
        "synthetic, 5000, .2865",
        "synthetic, 10000, .4324",
        "synthetic, 200000, .6396",
    })
    void givenPublishedTrace_whenReplayed_thenLfuWithinTwoThousandths(String trace, int blocks, double expected) {
        assertThat(ratio(new PolicyReplay(PolicyParameter.parse("LFU_DA")), forest(trace), blocks))
                .isCloseTo(expected, within(.002));
    }

    @Test
    void givenPublishedTrace_whenTokensAreCounted_thenTheIdealTokenHitRatio() {
        HitTotals totals = new PolicyReplay(PolicyKind.LRU).run(forest("conversation"), UNLIMITED, 0);
        assertThat(totals.tokenHitRatio()).isCloseTo(.3736, within(.00005));
    }

    /// The whole trace, with a hundredfold margin over what it takes, in the time of this thread alone: this
    /// catches an algorithm, not a slow machine and not a busy one.
    @Test
    void givenWholeConversationTrace_whenReplayedAtOneCapacity_thenInLessThanTwoSecondsOfAProcessor() {
        PrefixForest forest = forest("conversation");
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long start = threads.getCurrentThreadCpuTime();
        new PolicyReplay(PolicyKind.LRU).run(forest, 10_000, 0);
        assertThat(threads.getCurrentThreadCpuTime() - start).isLessThan(2_000_000_000L);
    }

    private static double ratio(SimulatedCache replay, PrefixForest forest, int blocks) {
        return Math.round(replay.run(forest, blocks, 0).blockHitRatio() * 10_000) / 10_000.0;
    }

    private static PrefixForest forest(String name) {
        Optional<Path> file = new TraceFinder().find(name);
        if (file.isEmpty()) {
            System.out.println("reference values: the " + name + " trace is not here, skipped (set KVCACHE_TRACES)");
        }
        assumeTrue(file.isPresent(), "trace " + name);
        return FORESTS.computeIfAbsent(name, any -> read(file.orElseThrow()));
    }

    private static PrefixForest read(Path file) {
        try {
            TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
            return new PrefixForest(reader.read(file), BlockCountingRule.REFERENCE);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
