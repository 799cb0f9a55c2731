package io.kvcache.server.quota;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.DiskBlock;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// Parts of a block on a disk that reads when the test says so.
final class PartReadTest {

    private static final int BLOCK_BYTES = 10_000;
    private static final int PART = 4_000;
    private static final long LONG = TimeUnit.HOURS.toNanos(1);

    private final ByteBudget budget = new ByteBudget(2 * PART);
    private final StalledBlock block = new StalledBlock();

    /// Reads nothing until it is told to.
    private static final class StalledBlock implements DiskBlock {

        private record Read(MemorySegment target, Runnable onEnd, CompletableFuture<Boolean> outcome) {}

        private final Queue<Read> reads = new ArrayDeque<>();

        @Override
        public int bytes() {
            return BLOCK_BYTES;
        }

        @Override
        public int checksum() {
            return 1;
        }

        @Override
        public CompletableFuture<Boolean> read(int from, MemorySegment target, Runnable onEnd) {
            Read read = new Read(target, onEnd, new CompletableFuture<>());
            reads.add(read);
            return read.outcome;
        }

        void end(boolean there) {
            Read read = reads.remove();
            read.target.fill((byte) 1);
            read.onEnd.run();
            read.outcome.complete(there);
        }
    }

    private PartRead start(long timeoutNanos) {
        return Objects.requireNonNull(PartRead.start(block, 100, PART, budget, timeoutNanos));
    }

    @Test
    void givenADiskThatReads_whenAPartHasCome_thenTheBudgetIsFreeAgain() {
        PartRead part = start(LONG);
        assertThat(part.there()).isNotDone();
        assertThat(budget.usedBytes()).isEqualTo(PART);
        block.end(true);
        assertThat(part.there()).isCompletedWithValue(true);
        byte[] expected = new byte[PART];
        Arrays.fill(expected, (byte) 1);
        assertThat(part.bytes()).isEqualTo(expected);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void givenAPartThatIsNotThere_whenItsReadEnds_thenTheBudgetIsFreeAgain() {
        PartRead part = start(LONG);
        block.end(false);
        assertThat(part.there()).isCompletedWithValue(false);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void givenADiskThatStalls_whenPartsTimeOut_thenTheyCountUntilItsReadsEnd() {
        assertThat(start(1).there().join()).isFalse();
        assertThat(start(1).there().join()).isFalse();
        assertThat(budget.usedBytes()).isEqualTo(2 * PART);
        assertThat(PartRead.start(block, 0, PART, budget, 1)).isNull();
        assertThat(block.reads).hasSize(2);
        block.end(true);
        assertThat(budget.usedBytes()).isEqualTo(PART);
        block.end(false);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void givenAPartThatTheBlockDoesNotHave_whenStarted_thenItThrowsAndTheBudgetIsFree() {
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> PartRead.start(block, BLOCK_BYTES - 1, 2, budget, LONG));
        assertThat(budget.usedBytes()).isZero();
    }
}
