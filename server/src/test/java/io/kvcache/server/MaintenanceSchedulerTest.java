package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Turns that come by themselves.
@Timeout(300)
final class MaintenanceSchedulerTest {

    @Test
    void givenTurnsThatSayWhenTheNextOneComes_whenOneFails_thenTheNextComesAllTheSame() throws InterruptedException {
        AtomicInteger turns = new AtomicInteger();
        CountDownLatch fourth = new CountDownLatch(4);
        try (MaintenanceScheduler maintenanceScheduler = new MaintenanceScheduler()) {
            maintenanceScheduler.scheduleSelfPaced(1, () -> {
                fourth.countDown();
                if (turns.incrementAndGet() == 2) {
                    throw new IllegalStateException("the second turn fails");
                }
                return 1;
            });
            assertThat(fourth.await(60, TimeUnit.SECONDS)).isTrue();
        }
    }

    @Test
    void givenATurnThatPutsTheNextOneOff_whenTimePasses_thenItDoesNotComeBefore() throws InterruptedException {
        AtomicInteger turns = new AtomicInteger();
        CountDownLatch others = new CountDownLatch(20);
        try (MaintenanceScheduler maintenanceScheduler = new MaintenanceScheduler()) {
            maintenanceScheduler.scheduleSelfPaced(1, () -> {
                turns.incrementAndGet();
                return TimeUnit.HOURS.toMillis(1);
            });
            maintenanceScheduler.scheduleRepeating(1, others::countDown);
            assertThat(others.await(60, TimeUnit.SECONDS)).isTrue();
            assertThat(turns.get()).isEqualTo(1);
        }
    }

    /// The server closes the objects that a turn uses right after the scheduler, so a turn must have ended by then.
    @Test
    void givenATurnThatIsUnderWay_whenClosed_thenItHasEndedByThenUndisturbed() throws InterruptedException {
        Thread closer = Thread.currentThread();
        CountDownLatch begun = new CountDownLatch(1);
        AtomicBoolean closing = new AtomicBoolean();
        AtomicBoolean closed = new AtomicBoolean();
        AtomicBoolean disturbed = new AtomicBoolean();
        AtomicBoolean ended = new AtomicBoolean();
        MaintenanceScheduler maintenanceScheduler = new MaintenanceScheduler();
        maintenanceScheduler.scheduleSelfPaced(1, () -> {
            begun.countDown();
            while (!closing.get() || (!closed.get() && closer.getState() == Thread.State.RUNNABLE)) {
                Pause.briefly(); // until the closer waits for this turn, or has not waited
            }
            disturbed.set(Thread.interrupted());
            ended.set(true);
            return 1;
        });
        assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
        closing.set(true);
        maintenanceScheduler.close();
        boolean endedBefore = ended.get();
        closed.set(true);
        assertThat(endedBefore).isTrue();
        assertThat(disturbed).isFalse();
    }

    @Test
    void givenTurnsToCome_whenClosed_thenNoneComes() {
        AtomicInteger turns = new AtomicInteger();
        MaintenanceScheduler maintenanceScheduler = new MaintenanceScheduler();
        maintenanceScheduler.scheduleSelfPaced(TimeUnit.HOURS.toMillis(1), () -> {
            turns.incrementAndGet();
            return 1;
        });
        maintenanceScheduler.scheduleRepeating(TimeUnit.HOURS.toMillis(1), turns::incrementAndGet);
        maintenanceScheduler.close(); // does not wait for an hour
        assertThat(turns).hasValue(0);
    }
}
