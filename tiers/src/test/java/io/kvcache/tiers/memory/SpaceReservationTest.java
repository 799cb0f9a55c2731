package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.memory.SharedMemorySource.SpaceReservation;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class SpaceReservationTest {

    private static final long STEP = 64L << 20;
    private static final long AT_ONCE = SpaceReservation.AT_ONCE_BYTES;
    private static final MappingRequest WANTED = new MappingRequest("slots", AT_ONCE + 3 * STEP);

    private final Semaphore steps = new Semaphore(0);

    private long takeStep(long reserved) {
        steps.acquireUninterruptibly();
        return reserved + STEP;
    }

    @Test
    void givenStepsUnderWay_whenSpaceIsAwaited_thenUntilItIsThere() throws InterruptedException {
        try (SpaceReservation reservation = SpaceReservation.start(WANTED, this::takeStep)) {
            assertThat(reservation.awaitSpace(AT_ONCE)).as("was taken before").isTrue();
            AtomicBoolean had = new AtomicBoolean();
            Thread waiting =
                    Thread.ofPlatform().daemon().start(() -> had.set(reservation.awaitSpace(AT_ONCE + 2 * STEP)));
            steps.release();
            assertThat(reservation.awaitSpace(AT_ONCE + 1)).isTrue();
            while (waiting.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            assertThat(had).isFalse();
            steps.release();
            waiting.join();
            assertThat(had).isTrue();
            steps.release();
            assertThat(reservation.awaitSpace(WANTED.bytes())).isTrue();
        }
    }

    @Test
    void givenSpaceThatRunsOut_whenAwaited_thenWhatIsThereCanBeUsedAndTheRestNever() {
        try (SpaceReservation reservation = SpaceReservation.start(WANTED, reserved -> {
            if (reserved > AT_ONCE) {
                throw WANTED.failed("the folder is full");
            }
            return reserved + STEP;
        })) {
            assertThat(reservation.awaitSpace(WANTED.bytes())).isFalse();
            assertThat(reservation.awaitSpace(AT_ONCE + STEP + 1)).isFalse();
            assertThat(reservation.awaitSpace(AT_ONCE + STEP)).isTrue();
        }
    }

    @Test
    void givenStepsUnderWay_whenClosed_thenThoseThatWaitAreTold() throws InterruptedException {
        SpaceReservation reservation = SpaceReservation.start(WANTED, this::takeStep);
        AtomicBoolean had = new AtomicBoolean(true);
        Thread waiting = Thread.ofPlatform().daemon().start(() -> had.set(reservation.awaitSpace(WANTED.bytes())));
        steps.release();
        reservation.awaitSpace(AT_ONCE + STEP);
        Thread closing = Thread.ofPlatform().daemon().start(reservation::close);
        waiting.join();
        assertThat(had).isFalse();
        steps.release();
        closing.join();
        assertThat(steps.availablePermits())
                .as("one step was under way, and no other began")
                .isZero();
        reservation.close();
    }
}
