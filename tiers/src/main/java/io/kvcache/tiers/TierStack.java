package io.kvcache.tiers;

import io.kvcache.core.spi.Clock;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskSet;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.TierThreads;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.options.MemoryOptions;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// The tiers below host memory: the disks and the threads that drive them, or nothing.
///
/// @param computeExecutor the threads that verify and code blocks beside them
record TierStack(
        @Nullable TierScheduler tierScheduler,
        @Nullable TierThreads threads,
        @Nullable ExecutorService computeExecutor) {

    private static final Logger LOG = System.getLogger(TieredKvCache.class.getName());

    /// Admission of writes, and the gain of a use if the kind needs it.
    record AdmissionSettings(AdmissionKind kind, double gain) {}

    static final TierStack EMPTY = new TierStack(null, null, null);

    /// Disks, and devices in front of them; or devices alone, as tiers of their own.
    ///
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used
    /// @throws RuntimeException when a device cannot be opened
    static TierStack open(
            HostStore store,
            List<DiskOptions> disks,
            List<TierSource> devices,
            AdmissionSettings admissionSettings,
            Clock clock) {
        DiskDirectory.requireApart(disks.stream().map(DiskOptions::directory).toList());
        ExecutorService checking = null;
        List<TierScheduler.TierSpec> targets = new ArrayList<>();
        if (!disks.isEmpty()) {
            ExecutorService own = computeExecutor(disks.size());
            DiskSet set = new DiskSet();
            disks.forEach(disk -> targets.add(target(disk, admissionSettings.kind, store, own, set)));
            checking = own;
        }
        devices.forEach(device -> targets.add(target(device, store)));
        LongStream largest = disks.isEmpty()
                ? devices.stream().mapToLong(TierSource::maxBlockBytes)
                : disks.stream().mapToLong(disk -> DiskGeometry.of(disk.bytes()).maxEntryBytes());
        TierWorkerLimits limits = TierWorkerLimits.of(store.capacityBytes());
        return open(store, targets, largest.min().orElse(0), admissionSettings, clock, limits, checking);
    }

    private static TierStack open(
            HostStore store,
            List<TierScheduler.TierSpec> targets,
            long each,
            AdmissionSettings admissionSettings,
            Clock clock,
            TierWorkerLimits limits,
            @Nullable ExecutorService checking) {
        TierScheduler tierScheduler = new TierScheduler(
                store.tierPort(),
                clock,
                targets,
                new TierScheduler.AdmissionConfig(
                        admissionSettings.kind, store.capacityBytes(), each, admissionSettings.gain),
                limits);
        try {
            return new TierStack(tierScheduler, TierThreads.start(tierScheduler), checking);
        } catch (RuntimeException refused) {
            if (checking != null) {
                checking.shutdown();
            }
            throw refused;
        }
    }

    private static void warnUnsaved(long unsavedBytes, Duration flush) {
        if (unsavedBytes > 0) {
            LOG.log(
                    Level.WARNING,
                    "The store closes and loses {0} bytes that no disk has: they were not written within flushOnClose,"
                            + " which is {1}, or cannot be. A longer flushOnClose, or a flush before, writes more",
                    Long.toString(unsavedBytes),
                    flush);
        }
    }

    /// A thread checks as fast as several disks read.
    private static ExecutorService computeExecutor(int disks) {
        int threads = Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, Math.max(1, disks));
        return Executors.newFixedThreadPool(
                threads,
                Thread.ofPlatform().daemon(true).name("kvcache-compute-", 0).factory());
    }

    private static TierScheduler.TierSpec target(
            DiskOptions disk, AdmissionKind admission, HostStore store, Executor checking, DiskSet set) {
        HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
        return new TierScheduler.TierSpec(
                new DiskTierOpener(
                        disk, admission, memory, store.memory(), checking, set.add(DiskTierOpener.name(disk))),
                disk.liveBytes(),
                new WriteBudget(disk.bytesPerSecond(), disk.bytesPerDay()));
    }

    /// A device checks what it reads by itself, and the store's policy says what stays there.
    private static TierScheduler.TierSpec target(TierSource device, HostStore store) {
        return new TierScheduler.TierSpec(
                new TierSourceOpener(device, store.memory()),
                device.maxLiveBytes(),
                new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED),
                true);
    }

    /// Closes the disks, after what is to be written there.
    ///
    /// @param flush how long everything may take that no disk has; zero for only what waits to be written
    /// @param patience how long that may take
    void shutDown(HostStore store, Duration flush, Duration patience) {
        if (tierScheduler != null && threads != null) {
            if (flush.isZero()) {
                tierScheduler.await(tierScheduler.flushQueued(), patience.toNanos());
            } else if (!tierScheduler.await(tierScheduler.flushBarrier(), flush.toNanos())) {
                warnUnsaved(store.tierPort().unflushedBytes(), flush);
            }
            threads.close();
            if (computeExecutor != null) {
                computeExecutor.shutdown();
            }
        }
    }

    /// Opens the disk tier of a directory.
    ///
    /// @param memory what the log works with comes from
    /// @param slots the store's host memory, which blocks travel from and to
    /// @param computeExecutor verifies and codes blocks beside the disk's thread
    /// @param member the disk among those of the store
    private record DiskTierOpener(
            DiskOptions options,
            AdmissionKind admission,
            HostMemorySource memory,
            MemorySegment slots,
            Executor computeExecutor,
            SetMember member)
            implements TierOpener {

        /// Registering touches all of the memory, which for gibibytes takes seconds of the start; huge
        /// pages, which larger stores get, spare the kernel most of the same work.
        private static final long MAX_REGISTERED_BYTES = 256L << 20;

        @Override
        public String name() {
            return name(options);
        }

        static String name(DiskOptions disk) {
            return "disk " + disk.directory();
        }

        @Override
        public Tier open(TierListener listener) {
            DiskDirectory directory =
                    DiskDirectory.open(options.directory(), options.bytes(), options.toDirectoryOptions(admission));
            try {
                if (slots.byteSize() <= MAX_REGISTERED_BYTES) {
                    directory.device().register(slots);
                }
                DiskLog.Resources resources =
                        new DiskLog.Resources(directory.device(), directory, memory, computeExecutor, member);
                return new DiskLog(name(), resources, directory.config(), listener);
            } catch (RuntimeException failed) {
                directory.close();
                throw failed;
            }
        }

        @Override
        public RuntimeException openFailure(Tier tier) {
            return tier instanceof DiskLog log
                    ? DiskDirectory.openFailure(options.directory(), log)
                    : new IllegalStateException(name() + " is " + tier.state() + ": " + tier.cause());
        }
    }

    /// Opens a tier that the caller provides.
    ///
    /// @param slots the store's host memory, which blocks travel from and to
    private record TierSourceOpener(TierSource source, MemorySegment slots) implements TierOpener {

        @Override
        public String name() {
            return source.name();
        }

        @Override
        public Tier open(TierListener listener) {
            return source.open(listener, slots);
        }

        @Override
        public RuntimeException openFailure(Tier tier) {
            return new IllegalStateException(name() + " is " + tier.state() + ": " + tier.cause());
        }
    }
}
