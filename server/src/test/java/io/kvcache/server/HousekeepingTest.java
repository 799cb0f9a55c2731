package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Turns that come by themselves.
@Timeout(60)
final class HousekeepingTest {

    @Test
    void givenTurnsThatSayWhenTheNextOneComes_whenOneFails_thenTheNextComesAllTheSame() throws InterruptedException {
        AtomicInteger turns = new AtomicInteger();
        CountDownLatch fourth = new CountDownLatch(4);
        try (Housekeeping housekeeping = new Housekeeping()) {
            housekeeping.paced(1, () -> {
                fourth.countDown();
                if (turns.incrementAndGet() == 2) {
                    throw new IllegalStateException("the second turn fails");
                }
                return 1;
            });
            assertThat(fourth.await(30, TimeUnit.SECONDS)).isTrue();
        }
    }

    @Test
    void givenATurnThatPutsTheNextOneOff_whenTimePasses_thenItDoesNotComeBefore() throws InterruptedException {
        AtomicInteger turns = new AtomicInteger();
        CountDownLatch others = new CountDownLatch(20);
        try (Housekeeping housekeeping = new Housekeeping()) {
            housekeeping.paced(1, () -> {
                turns.incrementAndGet();
                return TimeUnit.HOURS.toMillis(1);
            });
            housekeeping.every(1, others::countDown);
            assertThat(others.await(30, TimeUnit.SECONDS)).isTrue();
            assertThat(turns.get()).isEqualTo(1);
        }
    }
}
