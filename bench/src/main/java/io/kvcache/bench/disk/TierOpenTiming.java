package io.kvcache.bench.disk;

import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
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

    private static final long WAIT_NANOS = 1_000_000;
    private static final int ROUNDS = 5;
    private static final int ENTRY_BYTES = 64;

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

    /// The same with a store's tree of records in place of an index that only counts. Takes 128 bytes of memory a
    /// block.
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
        try (BlockDevice device = tier.openDevice();
                Arena arena = Arena.ofShared()) {
            long start = System.nanoTime();
            DiskLog log = new DiskLog(
                    device,
                    DiskLogConfig.of(DiskGeometry.of(device.size()), 1),
                    index,
                    size -> arena.allocate(size, DiskGeometry.PAGE_BYTES));
            while (log.state() == TierState.OPENING) {
                log.tick(System.nanoTime(), WAIT_NANOS);
            }
            double serving = (System.nanoTime() - start) / 1e9;
            while (log.isRecovering() && log.state() == TierState.SERVING) {
                log.tick(System.nanoTime(), WAIT_NANOS);
            }
            double full = (System.nanoTime() - start) / 1e9;
            log.stop();
            while (!log.isIdle()) {
                log.tick(System.nanoTime(), WAIT_NANOS);
            }
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
}
