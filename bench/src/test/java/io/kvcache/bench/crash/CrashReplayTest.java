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

final class CrashReplayTest {

    private static final String TRACE = "generated:5";

    @TempDir
    private Path folder;

    @Test
    @Tag("nightly")
    void givenAProcessThatIsKilledAfterAFlush_whenReopened_thenAllThatWasFlushedIsThere() throws IOException {
        TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
        PrefixForest forest = new PrefixForest(TraceSource.parse(TRACE).load(reader), BlockCountingRule.REFERENCE);
        CrashReplay crashReplay = CrashReplay.of(folder.resolve("disk"), TRACE, forest);
        assertThat(crashReplay.wrongBlocks()).isZero();
        assertThat(crashReplay.promisedBlocks()).isPositive();
        assertThat(crashReplay.presentBlocks()).isEqualTo(crashReplay.promisedBlocks());
        assertThat(crashReplay.passed()).isTrue();
        assertThat(crashReplay.writtenShare()).isBetween(.01, .99);
    }
}
