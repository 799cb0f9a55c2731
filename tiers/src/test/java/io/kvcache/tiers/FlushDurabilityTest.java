package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.movement.TierScheduler.FlushBarrier;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Promises of a flush when the disk fails meanwhile or is still recovering.
final class FlushDurabilityTest {

    private static final int MANY = 20;

    /// Gain of a use that saves next to nothing.
    private static final double NEVER_WORTH_IT = 1e-9;

    private final TickDrivenStore disk = new TickDrivenStore();

    @Test
    void givenABurialThatTheDiskCouldNotWrite_whenFlushed_thenItSaysSoAndTheNextOneKeepsItsPromise() {
        disk.openAndRecover();
        disk.put(1);
        assertThat(disk.flush()).isTrue();
        disk.device().setRates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
        assertThat(disk.drop(1)).isTrue();
        for (int i = 0; i < 3; i++) {
            disk.tick();
        }
        disk.device().setRates(FaultRates.none());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.contains(1)).as("was dropped, and that was flushed").isFalse();
        disk.close();
    }

    @Test
    void givenObjectsThatAreNotToldYet_whenDroppedAndFlushed_thenTheyDoNotComeBack() {
        disk.openAndRecover();
        for (int key = 0; key < MANY; key++) {
            disk.put(key);
        }
        assertThat(disk.flush()).isTrue();
        disk.crash();
        TickDrivenCache again = disk.open();
        assertThat(disk.drop(0)).as("the oldest is told last").isFalse();
        FlushBarrier flushBarrier = again.tierScheduler().flushBarrier();
        assertThat(again.cache().isRecovering()).isTrue();
        disk.tickUntil(flushBarrier::advance);
        assertThat(flushBarrier.isDurable()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.contains(0)).isFalse();
        assertThat(disk.contains(MANY - 1)).isTrue();
        disk.close();
    }

    @Test
    void givenADiskThatIsFullAndDoesNotLetGo_whenItIsReopenedAndAnswersAgain_thenItComesBack() {
        disk.openAndRecover();
        disk.put(1);
        assertThat(disk.flush()).isTrue();
        disk.crash();
        TickDrivenCache cache = disk.openAndRecover();
        disk.device().setFull(true);
        disk.put(2);
        assertThat(disk.flush()).isFalse();
        assertThat(state(cache)).isEqualTo(TierState.READ_ONLY);
        disk.device().hangAll();
        assertThat(disk.contains(1)).as("within its time").isFalse();
        cache.cache().reopenDisk(0);
        disk.tickUntil(() -> state(cache) == TierState.STOPPED);
        disk.device().resume();
        disk.tickUntil(() -> state(cache) == TierState.SERVING && !cache.cache().isRecovering());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.contains(2)).isTrue();
        disk.close();
    }

    @Test
    void givenADiskThatFailed_whenAWriteEndsThereAfterAll_thenItDoesNotCount() {
        TickDrivenCache cache = disk.openAndRecover();
        disk.put(1);
        disk.tickUntil(() -> disk.device().inFlight() > 0);
        disk.device().hangAll();
        disk.tickUntil(() -> state(cache) == TierState.FAILED);
        disk.device().resume();
        disk.tickUntil(() -> cache.tierScheduler().isIdle(0));
        assertThat(cache.store().tierPort().stats().disks().getFirst().blocks()).isZero();
        disk.tickUntil(() -> state(cache) == TierState.SERVING && !cache.cache().isRecovering());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.contains(1)).isTrue();
        disk.close();
    }

    @Test
    void givenObjectsThatAreUsedMoreAndLess_whenFlushed_thenTheMostUsedAreWrittenFirst() {
        TickDrivenCache cache = disk.open(AdmissionKind.VALUE, NEVER_WORTH_IT);
        disk.tickUntil(() -> !cache.cache().isRecovering());
        int[] uses = {0, 1, 6, 2, 0, 5};
        for (int key = 0; key < uses.length; key++) {
            disk.put(key);
            for (int use = 0; use < uses[key]; use++) {
                assertThat(disk.contains(key)).isTrue();
            }
        }
        disk.put(uses.length); // which is when uses are told
        assertThat(cache.cache().unsavedBytes()).isEqualTo((uses.length + 1) * TickDrivenStore.OBJECT_BYTES);
        FlushBarrier flushBarrier = cache.tierScheduler().flushBarrier();
        List<Integer> order = new ArrayList<>();
        TierPort tierPort = cache.store().tierPort();
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            MemorySegment last = next.pages().getLast();
            long key = next.block().bytes() % last.byteSize() - 1; // stands behind the value
            order.add((int) last.get(ValueLayout.JAVA_BYTE, key));
            tierPort.onWritten(next.record(), 0, -1);
        }
        assertThat(order).containsExactly(2, 5, 1, 3, 0, 4, 6);
        disk.tickUntil(flushBarrier::advance);
        assertThat(flushBarrier.isDurable()).as("this test took the writes").isFalse();
        assertThat(disk.flush()).isTrue();
        assertThat(cache.cache().unsavedBytes()).isZero();
        disk.close();
    }

    private static TierState state(TickDrivenCache cache) {
        return cache.cache().diskStats().getFirst().state();
    }
}
