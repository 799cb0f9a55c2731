package io.kvcache.bench.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.MatchComparison.MatchResult;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryAccess;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryResult;
import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;
import io.kvcache.bench.transport.TransportComparison.TransportResult;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which answers become of what was measured.
final class TransportResultsTest {

    private static final TransferStats OURS = new TransferStats(3, 300, 900, 10);
    private static final TransferStats OTHER = new TransferStats(6, 100, 300, 20);

    private static final ResourceUsage COST = new ResourceUsage(0.2, 5000, 3000);
    private static final ResourceUsage OTHER_COST = new ResourceUsage(0.1, 0, 0);

    private static TransportResult cell(int bytes, int inFlight) {
        return new TransportResult(
                new TransferSpec(TransferOperation.ACQUIRE, bytes, inFlight), OURS, OTHER, 0.5, COST, OTHER_COST);
    }

    @Test
    void givenCells_whenTold_thenEachHasSixAnswersAndSpeedAloneABudget() {
        List<BenchResult> answers = new TransportResults("aeron-bare", "bare Aeron", 5)
                .transportResults(
                        List.of(cell(1 << 20, 1), cell(4 << 20, 4)),
                        transferSpec -> transferSpec.bytes() == 1 << 20
                                ? new Threshold.RatioAtLeast(0.6)
                                : new Threshold.NoThreshold());
        assertThat(answers.stream().map(each -> each.spec().name()))
                .containsExactly(
                        "aeron-bare-acquire-1024k-1",
                        "aeron-bare-acquire-1024k-1-p50",
                        "aeron-bare-acquire-1024k-1-p99",
                        "aeron-bare-acquire-1024k-1-cpu",
                        "aeron-bare-acquire-1024k-1-heap",
                        "aeron-bare-acquire-1024k-1-server-heap",
                        "aeron-bare-acquire-4096k-4",
                        "aeron-bare-acquire-4096k-4-p50",
                        "aeron-bare-acquire-4096k-4-p99",
                        "aeron-bare-acquire-4096k-4-cpu",
                        "aeron-bare-acquire-4096k-4-heap",
                        "aeron-bare-acquire-4096k-4-server-heap");
        assertThat(answers.stream().filter(each -> !each.isWithinThreshold())).containsExactly(answers.getFirst());
        assertThat(answers.get(3).ratio()).isEqualTo(2);
        assertThat(answers.get(4).value()).isEqualTo(5000);
        assertThat(answers.get(4).ratio()).as("beside nothing").isZero();
        assertThat(answers.get(1).value()).isEqualTo(300);
        assertThat(answers.get(1).ratio()).isEqualTo(3);
        assertThat(answers.get(1).spec().unit()).isEqualTo("us");
    }

    @Test
    void givenSharedMemory_whenTold_thenTheServersTimeIsAnAnswerToo() {
        SharedMemoryResult cell = new SharedMemoryResult(
                SharedMemoryAccess.VIEW_IDLE,
                new TransferSpec(TransferOperation.ACQUIRE, 64 << 10, 1),
                OURS,
                OTHER,
                0.5,
                2.5);
        List<BenchResult> answers = new TransportResults("shared", "bare copy", 5).sharedMemoryResults(List.of(cell));
        assertThat(answers).hasSize(4);
        assertThat(answers.getLast().spec().name()).isEqualTo("shared-view-idle-64k-1-server");
        assertThat(answers.getLast().value()).isEqualTo(2.5);
    }

    /// A use of shared memory that half of the blocks take so long for.
    private static boolean good(SharedMemoryAccess use, int bytes, double p50Micros, double ratio) {
        TransferStats transferStats = new TransferStats(3, p50Micros, 900, 10);
        SharedMemoryResult cell = new SharedMemoryResult(
                use, new TransferSpec(TransferOperation.ACQUIRE, bytes, 1), transferStats, OTHER, ratio, 0.5);
        return new TransportResults("shared", "bare copy", 5)
                .sharedMemoryResults(List.of(cell)).stream().allMatch(BenchResult::isWithinThreshold);
    }

    @Test
    void givenSharedMemory_whenSlowerThanItsBudget_thenItIsMissed() {
        assertThat(good(SharedMemoryAccess.COPY, 64 << 10, 8, 0.1)).isTrue();
        assertThat(good(SharedMemoryAccess.COPY, 64 << 10, 8.1, 1)).isFalse();
        assertThat(good(SharedMemoryAccess.COPY, 1 << 20, 500, 0.85)).isTrue();
        assertThat(good(SharedMemoryAccess.COPY, 4 << 20, 5, 0.84)).isFalse();
        assertThat(good(SharedMemoryAccess.VIEW, 4 << 20, 25, 0)).isTrue();
        assertThat(good(SharedMemoryAccess.VIEW, 4 << 20, 26, 9)).isFalse();
        assertThat(good(SharedMemoryAccess.VIEW_IDLE, 4 << 20, 120, 0)).isTrue();
        assertThat(good(SharedMemoryAccess.VIEW_IDLE, 4 << 20, 121, 9)).isFalse();
    }

    @Test
    void givenAeronRedisAndMatches_whenJudged_thenByTheirBudgets() {
        TransferSpec one = new TransferSpec(TransferOperation.ACQUIRE, 1 << 20, 4);
        TransferSpec four = new TransferSpec(TransferOperation.ACQUIRE, 4 << 20, 4);
        assertThat(TransportThresholds.aeronSpeed(one).isMet(2, 0)).isTrue();
        assertThat(TransportThresholds.aeronSpeed(one).isMet(1.9, 9)).isFalse();
        assertThat(TransportThresholds.ratioToBaselineAeron(one).isMet(9, 0.59)).isFalse();
        assertThat(TransportThresholds.ratioToRedis(one).isMet(9, 1.39)).isFalse();
        assertThat(TransportThresholds.ratioToRedis(four).isMet(9, 1)).isTrue();
        assertThat(TransportThresholds.ratioToRedis(four).isMet(9, 0.99)).isFalse();
        for (String by : List.of("aeron", "tcp")) {
            MatchResult cell = new MatchResult(by, false, new TransferStats(1, 201, 900, 10), COST);
            List<BenchResult> answers = TransportResults.matchResults(List.of(cell), 5);
            assertThat(answers.getFirst().spec().name()).isEqualTo("match-1024-" + by + "-new-p50");
            assertThat(answers.getFirst().isWithinThreshold()).isEqualTo(by.equals("tcp"));
        }
    }
}
