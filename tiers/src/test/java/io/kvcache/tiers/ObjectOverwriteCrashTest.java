package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.movement.TierScheduler.FlushBarrier;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import org.junit.jupiter.api.Test;

/// State after a crash of an object that was flushed and then stored again.
final class ObjectOverwriteCrashTest {

    private static final int KEYS = 50;
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 128, 4, Dtype.BF16));
    private static final BlockChain CHAIN = BlockChain.of(SPACE, new int[] {1, 2, 3, 4});

    private final TickDrivenStore disk = new TickDrivenStore();

    private TickDrivenCache opened(AdmissionKind admission) {
        TickDrivenCache cache = disk.open(admission, AdmissionKind.DEFAULT_GAIN);
        disk.tickUntil(() -> !cache.cache().isRecovering());
        return cache;
    }

    private void ticks(int count) {
        for (int i = 0; i < count; i++) {
            disk.tick();
        }
    }

    @Test
    void givenFlushedObjects_whenStoredAgainWithTheSameBytes_thenACrashLosesNoneAndNothingIsWritten() {
        TickDrivenCache cache = opened(AdmissionKind.ALWAYS);
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
        TickDrivenCache cache = opened(AdmissionKind.ALWAYS);
        disk.put(1, 1);
        assertThat(disk.flush()).isTrue();
        disk.device().setRates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
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
        FlushBarrier flushBarrier = disk.current().tierScheduler().flushBarrier();
        disk.put(1, 3);
        disk.tickUntil(flushBarrier::advance);
        assertThat(flushBarrier.isDurable()).isTrue();
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
        TickDrivenCache again = disk.open();
        disk.device().setRates(FaultRates.none().with(Fault.WRITE_ERROR, 1));
        disk.put(0, 2); // the oldest is told last
        disk.tickUntil(() -> !again.cache().isRecovering());
        ticks(20);
        assertThat(disk.value(0)).isEqualTo(2);
        disk.crash();
        opened(AdmissionKind.ALWAYS);
        assertThat(disk.value(0)).isOne();
        disk.close();
    }

    @Test
    void givenTheSecondHitIsWritten_whenAnObjectIsStoredASecondTime_thenThatIsItsSecondHit() {
        TickDrivenCache cache = opened(AdmissionKind.SECOND_HIT);
        disk.put(1, 1);
        ticks(20);
        assertThat(cache.cache().offloadStats().written()).isZero();
        disk.put(1, 2);
        disk.tickUntil(() -> cache.cache().offloadStats().written() == 1);
        disk.close();
    }

    /// A disk that is reset loses what it had not synced, though it said that it was written.
    @Test
    void givenADropThatWasWrittenAndNotSynced_whenTheDiskLosesItAndComesBack_thenTheBlockDoesNot() {
        TickDrivenCache cache = opened(AdmissionKind.ALWAYS);
        cache.cache().register(SPACE);
        try (BlockWriter writer = cache.cache().put(CHAIN, 0, 0, KvCache.NO_WAIT)) {
            writer.segment().fill((byte) 1);
            writer.seal();
        }
        assertThat(disk.flush()).isTrue();
        disk.device().setRates(FaultRates.none().with(Fault.LOST_WRITE, 1));
        assertThat(cache.cache().drop(CHAIN, 0)).isOne();
        ticks(50);
        assertThat(cache.tierScheduler().isIdle(0)).as("it is written").isTrue();
        disk.device().hangAll();
        disk.put(2, 2);
        disk.tickUntil(() -> state(cache) == TierState.FAILED);
        disk.device().resume();
        disk.tickUntil(() -> state(cache) == TierState.SERVING && !cache.cache().isRecovering());
        assertThat(cache.cache().match(CHAIN).blocks()).isZero();
        assertThat(disk.flush()).isTrue();
        disk.crash();
        TickDrivenCache again = opened(AdmissionKind.ALWAYS);
        again.cache().register(SPACE);
        assertThat(again.cache().match(CHAIN).blocks()).isZero();
        assertThat(disk.value(2)).isEqualTo(2);
        disk.close();
    }

    private static TierState state(TickDrivenCache cache) {
        return cache.tierScheduler().stats().getFirst().state();
    }
}
