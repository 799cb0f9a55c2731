package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.tiers.os.SystemClock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class RoomWaiterTest {

    private static final long LONG_NANOS = TimeUnit.MINUTES.toNanos(5);

    /// For each attempt, whether it spared blocks that wait to be written.
    private final List<Boolean> attempts = new ArrayList<>();

    private int refusals;

    private PutReservation none(boolean sparing) {
        attempts.add(sparing);
        return new PutReservation(PutOutcome.NO_ROOM, -1);
    }

    @Test
    void givenAnInterruptedThread_whenItWaitsForRoom_thenNothingIsEvictedUnwrittenForIt() {
        Thread.currentThread().interrupt();

        PutReservation answer = new RoomWaiter(SystemClock.INSTANCE, () -> refusals++).reserve(LONG_NANOS, this::none);

        assertThat(Thread.interrupted()).as("it stays so").isTrue();
        assertThat(answer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
        assertThat(attempts).isNotEmpty().doesNotContain(false);
    }

    @Test
    void givenNoTime_whenAskedForRoom_thenWhatWaitsIsNotSparedInTheEnd() {
        new RoomWaiter(SystemClock.INSTANCE, () -> refusals++).reserve(0, this::none);

        assertThat(attempts).containsExactly(true, false);
        assertThat(refusals).as("one for all attempts").isEqualTo(1);
    }

    @Test
    void givenRoomAtTheLastAttempt_whenAskedForRoom_thenNothingIsRefused() {
        PutReservation there = new PutReservation(PutOutcome.RESERVED, 7);
        RoomWaiter roomWaiter = new RoomWaiter(SystemClock.INSTANCE, () -> refusals++);

        PutReservation answer = roomWaiter.reserve(0, sparing -> sparing ? none(true) : there);

        assertThat(answer).isEqualTo(there);
        assertThat(refusals).isZero();
    }
}
