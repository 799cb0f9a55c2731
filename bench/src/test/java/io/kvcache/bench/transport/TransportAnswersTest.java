package io.kvcache.bench.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which answers become of what was measured.
final class TransportAnswersTest {

    private static final Moves OURS = new Moves(3, 300, 900);
    private static final Moves OTHER = new Moves(6, 100, 300);

    private static TransportCell cell(int bytes, int inFlight) {
        return new TransportCell(new Cargo(Operation.ACQUIRE, bytes, inFlight), OURS, OTHER, 0.5);
    }

    @Test
    void givenCells_whenTold_thenEachHasThreeAnswersAndSpeedAloneABudget() {
        List<Answer> answers = new TransportAnswers("aeron-bare", "bare Aeron", 5)
                .of(
                        List.of(cell(1 << 20, 1), cell(4 << 20, 4)),
                        cargo -> cargo.bytes() == 1 << 20 ? new Budget.RatioAtLeast(0.6) : new Budget.None());
        assertThat(answers.stream().map(each -> each.question().name()))
                .containsExactly(
                        "aeron-bare-acquire-1024k-1",
                        "aeron-bare-acquire-1024k-1-p50",
                        "aeron-bare-acquire-1024k-1-p99",
                        "aeron-bare-acquire-4096k-4",
                        "aeron-bare-acquire-4096k-4-p50",
                        "aeron-bare-acquire-4096k-4-p99");
        assertThat(answers.stream().map(Answer::ok)).containsExactly(false, true, true, true, true, true);
        assertThat(answers.get(1).value()).isEqualTo(300);
        assertThat(answers.get(1).ratio()).isEqualTo(3);
        assertThat(answers.get(1).question().unit()).isEqualTo("us");
    }

    @Test
    void givenSharedMemory_whenTold_thenTheServersTimeIsAnAnswerToo() {
        SharedCell cell =
                new SharedCell(SharedUse.VIEW_IDLE, new Cargo(Operation.ACQUIRE, 64 << 10, 1), OURS, OTHER, 0.5, 2.5);
        List<Answer> answers = new TransportAnswers("shared", "bare copy", 5).ofShared(List.of(cell));
        assertThat(answers).hasSize(4);
        assertThat(answers.getLast().question().name()).isEqualTo("shared-view-idle-64k-1-server");
        assertThat(answers.getLast().value()).isEqualTo(2.5);
    }
}
