package io.kvcache.bench.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceFinder;
import io.kvcache.bench.trace.TraceGenerator;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.Workload;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.DiskOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The start of the conversation trace, or of a generated one where that is not here.
final class TierReplayTest {

    private static final int REQUESTS = 1_500;
    private static final int HOST_BLOCKS = 2_000;
    private static final int DISK_BLOCKS = 12_000;
    private static final int BLOCK_BYTES = 16 << 10;

    @TempDir
    private Path folder;

    private final TraceForest forest = new TraceForest(trace().first(REQUESTS), ReplayRule.REFERENCE);

    private static Trace trace() {
        Optional<Path> file = new TraceFinder().find("conversation");
        if (file.isEmpty()) {
            System.out.println("tier replay: the conversation trace is not here, so one is generated");
            return new TraceGenerator(Workload.mixed(), 3).generate("generated:3", REQUESTS);
        }
        try {
            return new TraceReader(MalformedLine.Choice.REFUSE, line -> {}).read(file.get());
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
    }

    private TierReplayResult run(String name, AdmissionKind admission) {
        DiskOptions disk = TierReplay.Settings.disk(folder.resolve(name), DISK_BLOCKS, BLOCK_BYTES);
        TierReplay.Settings settings =
                new TierReplay.Settings(PolicyKind.LRU, HOST_BLOCKS, BLOCK_BYTES, disk, admission);
        assertThat(settings.diskBlocks()).isEqualTo(DISK_BLOCKS);
        return TierReplay.run(forest, settings, TierReplay.Span.of(forest, 0), (request, cache, put) -> {});
    }

    @Test
    void givenEveryBlockIsWritten_whenReplayedOverTwoTiers_thenTheyHitAsOneLruDoes() {
        TierReplayResult result = run("always", AdmissionKind.ALWAYS);
        double one =
                new PolicyReplay(PolicyKind.LRU).run(forest, DISK_BLOCKS, 0).blockHitRatio();
        assertThat(result.check().wrongBlocks()).isZero();
        assertThat(result.check().blocksServed()).isEqualTo(result.totals().blockHits());
        assertThat(result.totals().blockHitRatio()).isCloseTo(one, within(.005));
        assertThat(result.hostHits()).isPositive();
        assertThat(result.diskHitRatio()).isPositive();
    }

    @Test
    void givenOnlyWhatIsUsedAgainIsWritten_whenReplayed_thenMostWritesAreSaved() {
        TierReplayResult result = run("second", AdmissionKind.SECOND_HIT);
        assertThat(result.check().wrongBlocks()).isZero();
        assertThat(result.written().saved()).isGreaterThan(.5);
        assertThat(result.written().amplification()).isGreaterThanOrEqualTo(1);
        assertThat(result.totals().blockHits()).isPositive();
    }

    @Test
    void givenADeviceInFront_whenReplayed_thenEnginesFindBlocksThereAndImportanceNoFewerThanRecency() {
        double recent = onDevice(PolicyKind.LRU);
        double important = onDevice(PolicyKind.IMPORTANCE);
        System.out.printf("found on a device: %.4f by last use, %.4f by importance%n", recent, important);
        assertThat(recent).isPositive();
        assertThat(important).isGreaterThan(recent - .01);
    }

    private double onDevice(PolicyKind policy) {
        DiskOptions disk = TierReplay.Settings.disk(folder.resolve(policy.name()), DISK_BLOCKS, BLOCK_BYTES);
        TierReplay.Settings settings = new TierReplay.Settings(
                policy, HOST_BLOCKS, BLOCK_BYTES, disk, AdmissionKind.ALWAYS, DISK_BLOCKS / 4L * BLOCK_BYTES);
        TierReplayResult result =
                TierReplay.run(forest, settings, TierReplay.Span.of(forest, 0), (request, cache, put) -> {});
        assertThat(result.check().wrongBlocks()).isZero();
        return result.deviceHitRatio();
    }
}
