package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Closing and reopening of a tier that fails.
final class CircuitBreakerTest {

    private static final long DISK_BYTES = 8L << 20;

    /// Goes on by ten milliseconds each time it is read, as if reading took so long.
    private static final class ReadTime implements Clock {
        private long now;

        @Override
        public long nanos() {
            now += TimeUnit.MILLISECONDS.toNanos(10);
            return now;
        }

        @Override
        public void sleep(long nanos) {
            now += nanos;
        }

        @Override
        public void await(Object monitor, long nanos) {
            sleep(nanos);
        }
    }

    private record HangingTierOpener(FaultyDevice device) implements TierOpener {

        @Override
        public String name() {
            return "hanging disk";
        }

        @Override
        public Tier open(TierListener listener) {
            HostMemorySource memory = ArenaMemory.source();
            DiskLogConfig config = DiskLogConfig.of(DiskGeometry.of(DISK_BYTES), 1);
            return new DiskLog(name(), new DiskLog.Resources(device, () -> {}, memory), config, listener);
        }

        @Override
        public RuntimeException openFailure(Tier tier) {
            return new IllegalStateException(name() + ": " + tier.cause());
        }
    }

    private final Clock clock = new ReadTime();
    private final HostStore store =
            new HostStore(new HostStoreConfig(SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 1 << 10), ArenaMemory.source());

    @AfterEach
    void close() {
        store.close();
    }

    private FaultyDevice device() {
        MemorySegment storage = MemorySegment.ofArray(new byte[(int) DISK_BYTES]);
        return new FaultyDevice(MemoryDevice.create(storage, 16), FaultRates.none(), 1, clock::nanos);
    }

    private TierScheduler movement(FaultyDevice... devices) {
        WriteBudget budget = new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED);
        return new TierScheduler(
                store.tierPort(),
                clock,
                Stream.of(devices)
                        .map(device ->
                                new TierScheduler.TierSpec(new HangingTierOpener(device), DISK_BYTES / 2, budget))
                        .toList(),
                new TierScheduler.AdmissionConfig(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN),
                TierWorkerLimits.of(SlabPool.MIN_BYTES));
    }

    @Test
    void givenADiskThatHangs_whenOpened_thenThatIsAnErrorAfterItsTime() {
        FaultyDevice device = device();
        device.hangAll();
        TierScheduler tierScheduler = movement(device);
        assertThatIllegalStateException()
                .isThrownBy(() -> tierScheduler.open(0))
                .withMessageContaining("hanging disk")
                .withMessageContaining("has not ended");
    }

    @Test
    void givenTwoDisks_whenOneFailsWhileItTellsAndTellsAgain_thenTheOtherIsStillAwaited() {
        TierScheduler tierScheduler = movement(device(), device());
        tierScheduler.onRecoveryEnded(0);
        tierScheduler.beforeReport(0);
        tierScheduler.onRecoveryEnded(0);
        assertThat(tierScheduler.isRecovering()).isTrue();
        tierScheduler.onRecoveryEnded(1);
        assertThat(tierScheduler.isRecovering()).isFalse();
    }
}
