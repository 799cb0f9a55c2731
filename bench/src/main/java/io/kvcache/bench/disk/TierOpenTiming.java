package io.kvcache.bench.disk;

import io.kvcache.bench.disk.SparseTierImage.CountingIndex;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.os.SystemClock;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// How long a log takes to open a full tier, beside a plain reading of the same trailers.
///
/// @param servingSeconds until it serves
/// @param fullSeconds until it has told all entries
/// @param readingSeconds of all trailers, many at a time
/// @param entries that it told
public record TierOpenTiming(double servingSeconds, double fullSeconds, double readingSeconds, long entries) {

    private static final long TIER_BYTES = 1L << 40;
    private static final long GIGABYTE = 1L << 30;
    private static final int SMALL = 64 << 10;
    private static final int LARGE = 2 << 20;
    private static final long WAIT_NANOS = 1_000_000;
    private static final int ROUNDS = 5;
    private static final int ENTRY_BYTES = 64;

    /// A full disk tier of 1 TiB after a restart, opened by the log alone, and by a store with its tree of
    /// records. The tier is sparse: its trailers are real and its blocks are holes, so it takes 1.1 GB while this
    /// runs.
    public static Suite suite() {
        List<String> names = List.of(
                "reopen-64k-serving",
                "reopen-64k-full",
                "reopen-64k-entry",
                "reopen-2m-serving",
                "reopen-2m-full",
                "reopen-2m-entry",
                "tree-64k-serving",
                "tree-64k-full",
                "tree-64k-entry",
                "tree-2m-serving",
                "tree-2m-full",
                "tree-2m-entry");
        return new Suite("reopen", "a full disk tier of 1 TiB after a restart", names, List.of(), run -> {
            List<Figure> figures = new ArrayList<>();
            for (int blockBytes : List.of(SMALL, LARGE)) {
                String size = blockBytes == SMALL ? "64k-" : "2m-";
                if (names.stream().anyMatch(name -> name.startsWith("reopen-" + size) && run.wants(name))) {
                    run.progress().accept("a log with blocks of " + blockBytes + " bytes");
                    TierOpenTiming log = measure(run.folder(), TIER_BYTES, blockBytes);
                    figures.addAll(log.figures("reopen-" + size, "reading", log.readingSeconds * 1e9 / log.entries));
                }
                if (names.stream().anyMatch(name -> name.startsWith("tree-" + size) && run.wants(name))) {
                    run.progress().accept("a store with blocks of " + blockBytes + " bytes");
                    double small = blockBytes == SMALL
                            ? measureTree(run.folder(), GIGABYTE, blockBytes).nanosPerEntry()
                            : 0;
                    figures.addAll(measureTree(run.folder(), TIER_BYTES, blockBytes)
                            .figures("tree-" + size, "a tier of 1 GiB", small));
                }
            }
            return figures.stream().filter(figure -> run.wants(figure.name())).toList();
        });
    }

    private List<Figure> figures(String name, String against, double nanosPerEntry) {
        double[] reading = {readingSeconds};
        return List.of(
                Figure.of(name + "serving", "s", new double[] {servingSeconds}, "reading", reading),
                Figure.of(name + "full", "s", new double[] {fullSeconds}, "reading", reading),
                Figure.of(name + "entry", "ns", new double[] {nanosPerEntry()}, against, new double[] {nanosPerEntry}));
    }

    /// Nanoseconds for each block.
    public double nanosPerEntry() {
        return 1e9 * fullSeconds / entries;
    }

    /// Makes a sparse tier, and opens it five times with an index that only counts.
    ///
    /// @param folder for the file: its trailers take 64 bytes a block
    /// @return the opening that took the median time
    public static TierOpenTiming measure(Path folder, long bytes, int blockBytes) throws IOException {
        return measure(folder, bytes, blockBytes, TierOpenTiming::reopen);
    }

    /// The same with a store's tree of records in place of an index that only counts. Takes 128 bytes of
    /// memory a block.
    public static TierOpenTiming measureTree(Path folder, long bytes, int blockBytes) throws IOException {
        return measure(folder, bytes, blockBytes, IndexedTierOpening::reopen);
    }

    /// One way to open a tier.
    @FunctionalInterface
    private interface OpenMethod {
        TierOpenTiming open(SparseTierImage tier, double readingSeconds);
    }

    private static TierOpenTiming measure(Path folder, long bytes, int blockBytes, OpenMethod openMethod)
            throws IOException {
        try (SparseTierImage tier = SparseTierImage.create(folder, bytes, blockBytes)) {
            double reading = readTrailers(tier, blockBytes);
            List<TierOpenTiming> sorted = IntStream.range(0, ROUNDS)
                    .mapToObj(_ -> openMethod.open(tier, reading))
                    .sorted(Comparator.comparingDouble(TierOpenTiming::fullSeconds))
                    .toList();
            return sorted.get(ROUNDS / 2);
        }
    }

    private static TierOpenTiming reopen(SparseTierImage tier, double readingSeconds) {
        CountingIndex index = new CountingIndex();
        HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
        BlockDevice device = tier.openDevice();
        long start = System.nanoTime();
        try (DiskLog log = new DiskLog(
                "sparse tier",
                new DiskLog.Resources(device, device, memory),
                DiskLogConfig.of(DiskGeometry.of(device.size()), 1),
                index)) {
            while (log.state() == TierState.OPENING) {
                log.tick(System.nanoTime(), WAIT_NANOS);
            }
            double serving = (System.nanoTime() - start) / 1e9;
            while (log.isRecovering() && log.state() == TierState.SERVING) {
                log.tick(System.nanoTime(), WAIT_NANOS);
            }
            double full = (System.nanoTime() - start) / 1e9;
            return new TierOpenTiming(serving, full, readingSeconds, index.recoveredCount());
        }
    }

    private static double readTrailers(SparseTierImage tier, int blockBytes) {
        try (BlockDevice device = tier.openDevice();
                Arena arena = Arena.ofShared()) {
            DiskGeometry geometry = DiskGeometry.of(device.size());
            long entries = geometry.regionBytes() / blockBytes;
            long bytes = (Math.ceilDiv(entries * ENTRY_BYTES, DiskGeometry.PAGE_BYTES) + 1) * DiskGeometry.PAGE_BYTES;
            MemorySegment memory = arena.allocate(bytes * device.depth(), DiskGeometry.PAGE_BYTES);
            long start = System.nanoTime();
            for (int region = 0; region < geometry.regions(); region++) {
                long offset = geometry.regionOffset(region) + geometry.regionBytes() - bytes;
                MemorySegment target = memory.asSlice(bytes * (region % device.depth()), bytes);
                while (!device.read(target, offset, region)) {
                    device.await((_, _) -> {}, WAIT_NANOS);
                }
            }
            while (device.inFlight() > 0) {
                device.await((_, _) -> {}, WAIT_NANOS);
            }
            return (System.nanoTime() - start) / 1e9;
        }
    }

    /// Opens a full tier as a store does: what the disk tells goes into the tree of records, under its
    /// lock.
    private static final class IndexedTierOpening {

        private static final long WAIT_NANOS = 1_000_000;
        private static final int EVENTS = 1 << 16;

        private IndexedTierOpening() {}

        /// Opens it once.
        ///
        /// @throws IllegalStateException when a block is not in the tree in the end, but for those of one
        ///     chain: its first may lie in the region that was open last, which cannot be found
        static TierOpenTiming reopen(SparseTierImage tier, double readingSeconds) {
            HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
            HostStoreConfig config = new HostStoreConfig(
                    SlabPool.MIN_BYTES, Math.toIntExact(tier.blockCount() + 1024), PolicyKind.LRU, EVENTS);
            try (HostStore store = new HostStore(config, memory)) {
                TierScheduler tierScheduler = new TierScheduler(
                        store.tierPort(),
                        SystemClock.INSTANCE,
                        List.of(new TierScheduler.TierSpec(
                                new ImageOpener(tier, memory),
                                Long.MAX_VALUE,
                                new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED))),
                        new TierScheduler.AdmissionConfig(AdmissionKind.ALWAYS, 1, 1, AdmissionKind.defaultGain()),
                        TierWorkerLimits.of(store.capacityBytes()));
                long start = System.nanoTime();
                tierScheduler.open(0);
                double serving = (System.nanoTime() - start) / 1e9;
                while (tierScheduler.isRecovering()) {
                    tierScheduler.tick(0, WAIT_NANOS);
                }
                double full = (System.nanoTime() - start) / 1e9;
                DiskTierStats found = store.tierPort().stats();
                tierScheduler.close(0);
                long blocks = found.disks().getFirst().blocks();
                if (found.restored() - blocks > SparseTierImage.CHAIN_BLOCKS || found.withoutRecord() > 0) {
                    throw new IllegalStateException("not every block is in the tree: " + found);
                }
                return new TierOpenTiming(serving, full, readingSeconds, blocks);
            }
        }

        private record ImageOpener(SparseTierImage tier, HostMemorySource memory) implements TierOpener {

            @Override
            public String name() {
                return "sparse tier";
            }

            @Override
            public Tier open(TierListener listener) {
                BlockDevice device = tier.openDevice();
                return new DiskLog(
                        name(),
                        new DiskLog.Resources(device, device, memory),
                        DiskLogConfig.of(DiskGeometry.of(device.size()), 1),
                        listener);
            }

            @Override
            public RuntimeException openFailure(Tier refused) {
                return new IllegalStateException(name() + " is " + refused.state() + ": " + refused.cause());
            }
        }
    }
}
