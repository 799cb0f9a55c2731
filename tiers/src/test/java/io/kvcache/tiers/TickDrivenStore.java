package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.FlushBarrier;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// A store over one disk that fails when a test says so, ticked by the test, through crashes and openings.
final class TickDrivenStore implements TierOpener {

    static final Namespace THINGS = Namespace.objects("things", "t");

    /// With a key of one byte.
    static final long OBJECT_BYTES = 5_001;

    private static final int VALUE_BYTES = 5_000;
    private static final long MIB = 1 << 20;
    private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);
    private static final int MAX_TICKS = 200_000;
    private static final DiskGeometry GEOMETRY = new DiskGeometry(10 * MIB, MIB);

    /// One entry is told a tick; a write that does not end for a second makes the disk fail.
    private static final LogLimits LIMITS = new LogLimits(64, 64, 1 << 16, 1, 1_000, 1_000 * MILLI);

    private final MemorySegment storage = MemorySegment.ofArray(new byte[(int) GEOMETRY.deviceBytes()]);
    private final TickDrivenClock tickDrivenClock = new TickDrivenClock();
    private @Nullable FaultyDevice device;
    private @Nullable TickDrivenCache current;

    /// Time that only a test moves, and ticks with it.
    private final class TickDrivenClock implements Clock {
        private long now;
        private long readingNanos;
        private boolean stalled;

        @Override
        public long nanos() {
            now += readingNanos;
            return now;
        }

        @Override
        public void sleep(long nanos) {
            now += nanos;
            if (current != null && !stalled) {
                current.tierScheduler().tick(0, 0);
            }
        }

        @Override
        public void await(Object monitor, long nanos) {
            sleep(nanos);
        }
    }

    @Override
    public String name() {
        return "ticked disk";
    }

    @Override
    public Tier open(TierListener listener) {
        FaultyDevice opened =
                new FaultyDevice(MemoryDevice.create(storage, 16), FaultRates.none(), 1, () -> tickDrivenClock.now);
        device = opened;
        DiskLog.Resources resources = new DiskLog.Resources(opened, opened, ArenaMemory.source());
        return new DiskLog(
                name(),
                resources,
                DiskLogConfig.of(GEOMETRY, 1).withLimits(LIMITS).withStaging(false),
                listener);
    }

    @Override
    public RuntimeException openFailure(Tier tier) {
        return new IllegalStateException(tier.cause());
    }

    /// Opens the store; what the disk held is told by later ticks.
    TickDrivenCache open() {
        return open(AdmissionKind.ALWAYS, AdmissionKind.DEFAULT_GAIN);
    }

    /// As [#open()], with what is written said.
    TickDrivenCache open(AdmissionKind admission, double gain) {
        WriteBudget budget = new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED);
        TickDrivenCache opened = TickDrivenCache.open(new TickDrivenCache.Setup(
                new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 1 << 10),
                ArenaMemory.source(),
                tickDrivenClock,
                List.of(new TierScheduler.TierSpec(this, 4 * MIB, budget)),
                new TierScheduler.AdmissionConfig(admission, 4 * MIB, MIB / 2, gain),
                TierWorkerLimits.of(4 * MIB),
                Duration.ofSeconds(5)));
        opened.cache().register(THINGS);
        current = opened;
        return opened;
    }

    /// Opens it, and waits until the disk has told all.
    TickDrivenCache openAndRecover() {
        TickDrivenCache opened = open();
        tickUntil(() -> !opened.cache().isRecovering());
        return opened;
    }

    TickDrivenCache current() {
        return Objects.requireNonNull(current);
    }

    FaultyDevice device() {
        return Objects.requireNonNull(device);
    }

    /// The process and the power go at once, and the process's memory with it.
    void crash() {
        device().crash(); // which looks at what was being written
        Objects.requireNonNull(current).store().close();
        current = null;
    }

    void close() {
        Objects.requireNonNull(current).cache().close();
    }

    void tick() {
        tickDrivenClock.sleep(MILLI);
    }

    long nanos() {
        return tickDrivenClock.now;
    }

    /// From here on the store's work takes time: so long for each time that it reads the clock.
    void setReadNanos(long nanos) {
        tickDrivenClock.readingNanos = nanos;
    }

    /// Has the disk do nothing while time passes, or do its work again.
    void setStalled(boolean stalled) {
        tickDrivenClock.stalled = stalled;
    }

    /// Lets time pass until `nanos`, in one tick.
    void advanceTo(long nanos) {
        tickDrivenClock.sleep(nanos - tickDrivenClock.now);
    }

    void tickUntil(BooleanSupplier holds) {
        for (int i = 0; !holds.getAsBoolean(); i++) {
            assertThat(i).as("ticks").isLessThan(MAX_TICKS);
            tick();
        }
    }

    /// Flushes, and ticks until that has ended.
    boolean flush() {
        FlushBarrier flushBarrier =
                Objects.requireNonNull(current).tierScheduler().flushBarrier();
        tickUntil(flushBarrier::advance);
        return flushBarrier.isDurable();
    }

    void put(int key) {
        put(key, 0);
    }

    /// Puts a value whose bytes are all the same.
    void put(int key, int each) {
        byte[] value = new byte[VALUE_BYTES];
        Arrays.fill(value, (byte) each);
        try (var writer = Objects.requireNonNull(current)
                .cache()
                .putObject(THINGS, new byte[] {(byte) key}, VALUE_BYTES, KvCache.NO_WAIT)) {
            writer.copyFrom(MemorySegment.ofArray(value));
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
    }

    /// Returns the value that [#put(int, int)] has put; -1 for none.
    int value(int key) {
        try (ObjectView view = Objects.requireNonNull(current)
                .cache()
                .getObject(THINGS, new byte[] {(byte) key}, Duration.ofNanos(100 * MILLI))) {
            if (view == null) {
                return -1;
            }
            MemorySegment value = MemorySegment.ofArray(new byte[VALUE_BYTES]);
            view.copyTo(0, VALUE_BYTES, value);
            return value.get(ValueLayout.JAVA_BYTE, VALUE_BYTES - 1);
        }
    }

    boolean drop(int key) {
        return Objects.requireNonNull(current).cache().dropObject(THINGS, new byte[] {(byte) key});
    }

    boolean contains(int key) {
        try (ObjectView view = Objects.requireNonNull(current)
                .cache()
                .getObject(THINGS, new byte[] {(byte) key}, Duration.ofNanos(100 * MILLI))) {
            return view != null;
        }
    }
}
