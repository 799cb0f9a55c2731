package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.tiers.SlotWriter.RoomWaiter;
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

    private PutReservation reserve(long timeoutNanos, int refusedAttempts) {
        RoomWaiter.Wait wait = new RoomWaiter(SystemClock.INSTANCE, () -> refusals++).begin(timeoutNanos);
        PutReservation room;
        do {
            attempts.add(wait.isSparing());
            room = new PutReservation(attempts.size() > refusedAttempts ? PutOutcome.RESERVED : PutOutcome.NO_ROOM, 7);
        } while (wait.repeats(room));
        return room;
    }

    @Test
    void givenAnInterruptedThread_whenItWaitsForRoom_thenNothingIsEvictedUnwrittenForIt() {
        Thread.currentThread().interrupt();

        PutReservation answer = reserve(LONG_NANOS, Integer.MAX_VALUE);

        assertThat(Thread.interrupted()).as("it stays so").isTrue();
        assertThat(answer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
        assertThat(attempts).isNotEmpty().doesNotContain(false);
    }

    @Test
    void givenNoTime_whenAskedForRoom_thenTheStoreMayTakeWhatWaits() {
        reserve(0, Integer.MAX_VALUE);

        assertThat(attempts).containsExactly(false);
        assertThat(refusals).as("one for all attempts").isEqualTo(1);
    }

    @Test
    void givenSomeTime_whenAskedForRoom_thenWhatWaitsIsNotSparedInTheEnd() {
        reserve(TimeUnit.MILLISECONDS.toNanos(1), Integer.MAX_VALUE);

        assertThat(attempts).startsWith(true).endsWith(false);
        assertThat(attempts.indexOf(false)).as("attempts that spare").isEqualTo(attempts.size() - 1);
        assertThat(refusals).as("one for all attempts").isEqualTo(1);
    }

    @Test
    void givenRoomAtTheLastAttempt_whenAskedForRoom_thenNothingIsRefused() {
        PutReservation answer = reserve(LONG_NANOS, 3);

        assertThat(answer.outcome()).isEqualTo(PutOutcome.RESERVED);
        assertThat(attempts).hasSize(4);
        assertThat(refusals).isZero();
    }
}
