package io.kvcache.core.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// Waiters for blocks of a table are called on their own executor, even if another waiter's executor fails.
final class ReadyWaitersTest {

    private static final Executor CLOSED = work -> {
        throw new RejectedExecutionException("closed");
    };

    private static final Executor WITHOUT_THREADS = work -> {
        throw new OutOfMemoryError("unable to create native thread");
    };

    private final ReadyWaiters waiters = new ReadyWaiters();

    @Test
    void givenWaitersForSoMany_whenSomeAreReady_thenOnlyThoseWhoHaveEnoughAreTold() {
        CompletableFuture<Integer> two = waiters.add(2, Runnable::run);
        CompletableFuture<Integer> three = waiters.add(3, Runnable::run);
        waiters.takeReady(2, false).run();
        assertThat(two).isCompletedWithValue(2);
        assertThat(three).isNotDone();
        waiters.takeReady(2, true).run();
        assertThat(three).isCompletedWithValue(2);
    }

    @Test
    void givenExecutorsThatTakeNothing_whenReady_thenTheirOwnStagesFailAndTheOthersAreTold() {
        CompletableFuture<Integer> closed = waiters.add(1, CLOSED);
        CompletableFuture<Integer> exhausted = waiters.add(1, WITHOUT_THREADS);
        CompletableFuture<Integer> open = waiters.add(1, Runnable::run);
        waiters.takeReady(1, false).run();
        assertThat(open).isCompletedWithValue(1);
        assertThatThrownBy(() -> closed.get(60, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(RejectedExecutionException.class);
        assertThatThrownBy(() -> exhausted.get(60, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(OutOfMemoryError.class);
    }
}
