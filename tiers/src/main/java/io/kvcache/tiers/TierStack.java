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
import io.kvcache.tiers.front.CachedDiskTier;
import io.kvcache.tiers.front.CachedDiskTier.RetiredTiers;
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
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
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

    /// Disks, some or all of them with a tier of another kind in front; one that is in front of several has a part
    /// for each.
    ///
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used
    /// @throws IllegalArgumentException for more of the others than there are disks
    static TierStack open(
            HostStore store,
            List<DiskOptions> disks,
            List<TierSource> others,
            AdmissionSettings admissionSettings,
            Clock clock) {
        DiskDirectory.requireApart(disks.stream().map(DiskOptions::directory).toList());
        List<@Nullable TierSource> fronts = assignFronts(disks.size(), others);
        ExecutorService checking = computeExecutor(disks.size());
        DiskSet set = new DiskSet();
        List<TierScheduler.TierSpec> targets = IntStream.range(0, disks.size())
                .mapToObj(
                        disk -> target(disks.get(disk), fronts.get(disk), admissionSettings.kind, store, checking, set))
                .toList();
        long each = disks.stream()
                .mapToLong(disk -> DiskGeometry.of(disk.bytes()).maxEntryBytes())
                .min()
                .orElse(0);
        return open(
                store, targets, each, admissionSettings, clock, TierWorkerLimits.of(store.capacityBytes()), checking);
    }

    /// Returns the front tier of each disk: disks take them in turn.
    private static List<@Nullable TierSource> assignFronts(int disks, List<TierSource> others) {
        if (others.size() > disks) {
            throw new IllegalArgumentException(
                    others.size() + " tiers in front of " + disks + " disks; a disk takes one, so leave out "
                            + others.getLast().name() + " or add a disk");
        }
        @Nullable TierSource[] fronts = new TierSource[disks];
        for (int other = 0; other < others.size(); other++) {
            int each = (disks - other + others.size() - 1) / others.size();
            List<TierSource> parts =
                    each == 1 ? List.of(others.get(other)) : others.get(other).split(each);
            for (int part = 0; part < each; part++) {
                fronts[other + part * others.size()] = parts.get(part);
            }
        }
        return Arrays.asList(fronts);
    }

    /// Tiers of other kinds, which check what they read by themselves; the store's policy says what
    /// stays there.
    ///
    /// @throws RuntimeException when one cannot be opened
    static TierStack openOthers(
            HostStore store, List<TierSource> sources, AdmissionSettings admissionSettings, Clock clock) {
        List<TierScheduler.TierSpec> targets = sources.stream()
                .map(source -> new TierScheduler.TierSpec(
                        new TierSourceOpener(source, store.memory()),
                        source.maxLiveBytes(),
                        new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED),
                        true))
                .toList();
        long each = sources.stream().mapToLong(TierSource::maxBlockBytes).min().orElse(0);
        return open(
                store,
                targets,
                each,
                admissionSettings,
                clock,
                TierWorkerLimits.forDevice(store.capacityBytes()),
                null);
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
            DiskOptions disk,
            @Nullable TierSource front,
            AdmissionKind admission,
            HostStore store,
            Executor checking,
            DiskSet set) {
        HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
        TierOpener opener = new DiskTierOpener(
                disk, admission, memory, store.memory(), checking, set.add(DiskTierOpener.name(disk)));
        return new TierScheduler.TierSpec(
                front == null ? opener : new CachedDiskTierOpener(opener, front, store.memory(), new RetiredTiers()),
                disk.liveBytes(),
                new WriteBudget(disk.bytesPerSecond(), disk.bytesPerDay()));
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

    /// Opens a disk with a tier in front of it that the caller provides.
    ///
    /// @param slots the store's host memory, which blocks travel from and to
    /// @param retiredTiers what was in front of it before and is still used
    private record CachedDiskTierOpener(
            TierOpener disk, TierSource front, MemorySegment slots, RetiredTiers retiredTiers) implements TierOpener {

        @Override
        public String name() {
            return disk.name();
        }

        @Override
        public Tier open(TierListener listener) {
            return new CachedDiskTier(
                    front.name(), disk::open, before -> front.open(before, slots), listener, retiredTiers);
        }

        @Override
        public void closeRetired() {
            retiredTiers.close();
        }

        @Override
        public RuntimeException openFailure(Tier tier) {
            return disk.openFailure(tier instanceof CachedDiskTier fronted ? fronted.disk() : tier);
        }
    }
}
