package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.os.SystemClock;
import java.lang.reflect.Proxy;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Tombstones that were written and not made durable.
final class WritePumpTest {

    private static final Tombstone TOMBSTONE = new Tombstone(1, 2, 0, false);

    /// A device has lost everything when it is opened again, and has no flush.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAWrittenTombstone_whenTheTierFails_thenADiskGetsItAgainAndADeviceDoesNot(boolean isDevice) {
        try (HostStore store = new HostStore(
                new HostStoreConfig(SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 1 << 10), ArenaMemory.source())) {
            int disk = store.tierPort().addDisk(1 << 20, isDevice);
            store.tierPort().requeueTombstone(disk, TOMBSTONE);
            WritePump pump = new WritePump(
                    new TierWorker.WorkerContext(
                            disk,
                            store.tierPort(),
                            SystemClock.INSTANCE,
                            new UnusedOpener(),
                            new TierScheduler.LoadListeners(),
                            TierWorkerLimits.of(SlabPool.MIN_BYTES),
                            new WritePump.WriteBalancer(1 << 20)),
                    new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED));

            assertThat(pump.pumpTombstones(acceptingTier())).isTrue();
            pump.onWritten(pump.lastAcceptedTombstone(), 0);
            pump.rejectAll();

            assertThat(store.tierPort().nextTombstone(disk)).isEqualTo(isDevice ? null : TOMBSTONE);
        }
    }

    private static Tier acceptingTier() {
        return (Tier) Proxy.newProxyInstance(
                Tier.class.getClassLoader(), new Class<?>[] {Tier.class}, (_, method, _) -> answer(method.getName()));
    }

    private static @Nullable Object answer(String method) {
        return switch (method) {
            case "state" -> TierState.SERVING;
            case "tombstone" -> SubmitResult.ACCEPTED;
            default -> throw new UnsupportedOperationException(method);
        };
    }

    private static final class UnusedOpener implements TierOpener {

        @Override
        public String name() {
            return "tier";
        }

        @Override
        public Tier open(TierListener listener) {
            throw new UnsupportedOperationException();
        }

        @Override
        public RuntimeException openFailure(Tier tier) {
            throw new UnsupportedOperationException();
        }
    }
}
