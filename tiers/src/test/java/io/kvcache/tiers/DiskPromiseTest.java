package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.Fault;
import io.kvcache.tiers.device.FaultRates;
import io.kvcache.tiers.movement.Flush;
import org.junit.jupiter.api.Test;

/// What a flush promises, when the disk fails meanwhile or has not told everything yet.
final class DiskPromiseTest {

    private static final int MANY = 20;

    private final TickedDisk disk = new TickedDisk();

    @Test
    void givenABurialThatTheDiskCouldNotWrite_whenFlushed_thenItSaysSoAndTheNextOneKeepsItsPromise() {
        disk.openAndRecover();
        disk.put(1);
        assertThat(disk.flush()).isTrue();
        disk.device().rates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
        assertThat(disk.drop(1)).isTrue();
        for (int i = 0; i < 3; i++) {
            disk.tick();
        }
        disk.device().rates(FaultRates.none());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.has(1)).as("was dropped, and that was flushed").isFalse();
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
        TickedCache again = disk.open();
        assertThat(disk.drop(0)).as("the oldest is told last").isFalse();
        Flush flush = again.movement().flush();
        assertThat(again.cache().recovering()).isTrue();
        disk.until(flush::ended);
        assertThat(flush.durable()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.has(0)).isFalse();
        assertThat(disk.has(MANY - 1)).isTrue();
        disk.close();
    }

    @Test
    void givenADiskThatIsFullAndDoesNotLetGo_whenItIsReopenedAndAnswersAgain_thenItComesBack() {
        disk.openAndRecover();
        disk.put(1);
        assertThat(disk.flush()).isTrue();
        disk.crash();
        TickedCache cache = disk.openAndRecover();
        disk.device().full(true);
        disk.put(2);
        assertThat(disk.flush()).isFalse();
        assertThat(state(cache)).isEqualTo(TierState.READ_ONLY);
        disk.device().hang();
        assertThat(disk.has(1)).as("within its time").isFalse();
        cache.cache().reopenDisk(0);
        disk.until(() -> state(cache) == TierState.STOPPED);
        disk.device().resume();
        disk.until(() -> state(cache) == TierState.SERVING && !cache.cache().recovering());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.has(2)).isTrue();
        disk.close();
    }

    @Test
    void givenADiskThatFailed_whenAWriteEndsThereAfterAll_thenItDoesNotCount() {
        TickedCache cache = disk.openAndRecover();
        disk.put(1);
        disk.until(() -> disk.device().inFlight() > 0);
        disk.device().hang();
        disk.until(() -> state(cache) == TierState.FAILED);
        disk.device().resume();
        disk.until(() -> cache.movement().idle(0));
        assertThat(cache.store().disks().stats().disks().getFirst().blocks()).isZero();
        disk.until(() -> state(cache) == TierState.SERVING && !cache.cache().recovering());
        assertThat(disk.flush()).isTrue();
        disk.crash();
        disk.openAndRecover();
        assertThat(disk.has(1)).isTrue();
        disk.close();
    }

    private static TierState state(TickedCache cache) {
        return cache.cache().diskStats().getFirst().state();
    }
}
