package io.kvcache.bench.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which answers become of what was measured.
final class TransportAnswersTest {

    private static final Moves OURS = new Moves(3, 300, 900, 10);
    private static final Moves OTHER = new Moves(6, 100, 300, 20);

    private static final Cost COST = new Cost(0.2, 5000, 3000);
    private static final Cost OTHER_COST = new Cost(0.1, 0, 0);

    private static TransportCell cell(int bytes, int inFlight) {
        return new TransportCell(new Cargo(Operation.ACQUIRE, bytes, inFlight), OURS, OTHER, 0.5, COST, OTHER_COST);
    }

    @Test
    void givenCells_whenTold_thenEachHasSixAnswersAndSpeedAloneABudget() {
        List<BenchResult> answers = new TransportAnswers("aeron-bare", "bare Aeron", 5)
                .of(
                        List.of(cell(1 << 20, 1), cell(4 << 20, 4)),
                        cargo -> cargo.bytes() == 1 << 20
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
        SharedCell cell =
                new SharedCell(SharedUse.VIEW_IDLE, new Cargo(Operation.ACQUIRE, 64 << 10, 1), OURS, OTHER, 0.5, 2.5);
        List<BenchResult> answers = new TransportAnswers("shared", "bare copy", 5).ofShared(List.of(cell));
        assertThat(answers).hasSize(4);
        assertThat(answers.getLast().spec().name()).isEqualTo("shared-view-idle-64k-1-server");
        assertThat(answers.getLast().value()).isEqualTo(2.5);
    }

    /// A use of shared memory that half of the blocks take so long for.
    private static boolean good(SharedUse use, int bytes, double p50Micros, double ratio) {
        Moves moves = new Moves(3, p50Micros, 900, 10);
        SharedCell cell = new SharedCell(use, new Cargo(Operation.ACQUIRE, bytes, 1), moves, OTHER, ratio, 0.5);
        return new TransportAnswers("shared", "bare copy", 5)
                .ofShared(List.of(cell)).stream().allMatch(BenchResult::isWithinThreshold);
    }

    @Test
    void givenSharedMemory_whenSlowerThanItsBudget_thenItIsMissed() {
        assertThat(good(SharedUse.COPY, 64 << 10, 8, 0.1)).isTrue();
        assertThat(good(SharedUse.COPY, 64 << 10, 8.1, 1)).isFalse();
        assertThat(good(SharedUse.COPY, 1 << 20, 500, 0.85)).isTrue();
        assertThat(good(SharedUse.COPY, 4 << 20, 5, 0.84)).isFalse();
        assertThat(good(SharedUse.VIEW, 4 << 20, 25, 0)).isTrue();
        assertThat(good(SharedUse.VIEW, 4 << 20, 26, 9)).isFalse();
        assertThat(good(SharedUse.VIEW_IDLE, 4 << 20, 120, 0)).isTrue();
        assertThat(good(SharedUse.VIEW_IDLE, 4 << 20, 121, 9)).isFalse();
    }

    @Test
    void givenAeronRedisAndMatches_whenJudged_thenByTheirBudgets() {
        Cargo one = new Cargo(Operation.ACQUIRE, 1 << 20, 4);
        Cargo four = new Cargo(Operation.ACQUIRE, 4 << 20, 4);
        assertThat(TransportBudgets.overAeron(one).isMet(2, 0)).isTrue();
        assertThat(TransportBudgets.overAeron(one).isMet(1.9, 9)).isFalse();
        assertThat(TransportBudgets.besideBareAeron(one).isMet(9, 0.59)).isFalse();
        assertThat(TransportBudgets.besideRedis(one).isMet(9, 1.39)).isFalse();
        assertThat(TransportBudgets.besideRedis(four).isMet(9, 1)).isTrue();
        assertThat(TransportBudgets.besideRedis(four).isMet(9, 0.99)).isFalse();
        for (String by : List.of("aeron", "tcp")) {
            MatchCell cell = new MatchCell(by, false, new Moves(1, 201, 900, 10), COST);
            List<BenchResult> answers = TransportAnswers.ofMatches(List.of(cell), 5);
            assertThat(answers.getFirst().spec().name()).isEqualTo("match-1024-" + by + "-new-p50");
            assertThat(answers.getFirst().isWithinThreshold()).isEqualTo(by.equals("tcp"));
        }
    }
}
