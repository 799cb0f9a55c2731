package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.device.Fault;
import io.kvcache.tiers.device.FaultRates;
import io.kvcache.tiers.movement.Flush;
import org.junit.jupiter.api.Test;

/// What a crash leaves of an object that was flushed and then stored again.
final class StoredAgainTest {

    private static final int KEYS = 50;

    private final TickedDisk disk = new TickedDisk();

    private TickedCache opened(AdmissionKind admission) {
        TickedCache cache = disk.open(admission, AdmissionKind.USUAL_GAIN);
        disk.until(() -> !cache.cache().recovering());
        return cache;
    }

    private void ticks(int count) {
        for (int i = 0; i < count; i++) {
            disk.tick();
        }
    }

    @Test
    void givenFlushedObjects_whenStoredAgainWithTheSameBytes_thenACrashLosesNoneAndNothingIsWritten() {
        TickedCache cache = opened(AdmissionKind.ALWAYS);
        for (int key = 0; key < KEYS; key++) {
            disk.put(key, key);
        }
        assertThat(disk.flush()).isTrue();
        long written = cache.cache().offloadStats().written();
        for (int key = 0; key < KEYS; key++) {
            disk.put(key, key);
        }
        ticks(20);
        assertThat(cache.cache().offloadStats().written()).isEqualTo(written);
        assertThat(cache.cache().unsavedBytes()).isZero();
        cache.cache().validate();
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        for (int key = 0; key < KEYS; key++) {
            assertThat(disk.value(key)).isEqualTo(key);
        }
        disk.close();
    }

    @Test
    void givenAFlushedObject_whenStoredAgainAndNotWrittenYet_thenACrashLeavesTheOlderValue() {
        TickedCache cache = opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.device().rates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
        disk.put(1, 2);
        ticks(20);
        assertThat(disk.value(1)).as("before the crash").isEqualTo(2);
        cache.cache().validate();
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(1)).isOne();
        disk.close();
    }

    @Test
    void givenAFlushedObject_whenStoredAgainAndWritten_thenACrashLeavesOneOfTheTwo() {
        opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.put(1, 2);
        ticks(20);
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(1)).isBetween(1, 2);
        disk.close();
    }

    @Test
    void givenAFlushedObject_whenStoredAgainAndFlushed_thenOnlyTheNewValueComesBack() {
        opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.put(1, 2);
        assertThat(disk.flush()).isTrue();
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(1)).isEqualTo(2);
        disk.close();
    }

    @Test
    void givenAnObjectStoredAgain_whenReplacedOnceMoreWhileAFlushRuns_thenTheFirstValueDoesNotComeBack() {
        opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.put(1, 2);
        Flush flush = disk.life().movement().flush();
        disk.put(1, 3);
        disk.until(flush::ended);
        assertThat(flush.durable()).isTrue();
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(1)).isBetween(2, 3);
        disk.close();
    }

    @Test
    void givenAFlushedObject_whenStoredAgainAndDropped_thenNeitherValueComesBack() {
        opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.put(1, 2);
        assertThat(disk.drop(1)).isTrue();
        assertThat(disk.flush()).isTrue();
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(1)).isEqualTo(-1);
        disk.close();
    }

    @Test
    void givenAFlushedObjectThatIsNotToldYet_whenStoredAgain_thenAnotherCrashLeavesAValue() {
        opened(AdmissionKind.ALWAYS);
        for (int key = 0; key < KEYS; key++) {
            disk.put(key, 1);
        }
        assertThat(disk.flush()).isTrue();
        disk.crash();
        TickedCache again = disk.open();
        disk.device().rates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
        disk.put(0, 2); // the oldest is told last
        disk.until(() -> !again.cache().recovering());
        ticks(20);
        assertThat(disk.value(0)).isEqualTo(2);
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(0)).isOne();
        disk.close();
    }

    @Test
    void givenTheSecondHitIsWritten_whenAnObjectIsStoredASecondTime_thenThatIsItsSecondHit() {
        TickedCache cache = opened(AdmissionKind.SECOND_HIT);
        disk.put(1, 1);
        ticks(20);
        assertThat(cache.cache().offloadStats().written()).isZero();
        disk.put(1, 2);
        disk.until(() -> cache.cache().offloadStats().written() == 1);
        disk.close();
    }
}
