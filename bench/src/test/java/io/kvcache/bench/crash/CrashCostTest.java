package io.kvcache.bench.crash;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CrashCostTest {

    private static final String TRACE = "generated:5";

    @TempDir
    private Path folder;

    @Test
    @Tag("nightly")
    void givenAProcessKilledWithoutAFlush_whenAnotherGoesOn_thenMostHitsAreLeft() throws IOException {
        TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
        PrefixForest forest = new PrefixForest(TraceSource.parse(TRACE).load(reader), BlockCountingRule.REFERENCE);
        CrashCost crashCost = CrashCost.of(folder.resolve("disk"), TRACE, forest, 600, 1_000);
        assertThat(crashCost.killedAfter()).isGreaterThanOrEqualTo(600);
        assertThat(crashCost.interrupted().check().wrongBlocks()).isZero();
        assertThat(crashCost.uninterrupted().totals().blockHits()).isPositive();
        assertThat(crashCost.keptShare()).isGreaterThanOrEqualTo(.8);
        assertThat(crashCost.passed()).isTrue();
        assertThat(folder).isEmptyDirectory();
    }
}
