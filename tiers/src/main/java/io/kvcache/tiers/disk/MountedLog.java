package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The parts of a log whose device has been mounted, and the order in which they do their work.
final class MountedLog {

    private final LogIo io;
    private final DiskLogConfig config;
    private final RegionTable regionTable;
    private final NamespaceTable namespaces;
    private final RegionScan regionScan;
    private final TrailerWriter trailerWriter;
    private final RegionEraser regionEraser;
    private final BatchWriter writer;
    private final FlushWaiters flushWaiters;
    private final VerifyingReader reads;
    private final RegionReclaimer regionReclaimer;
    private final List<RegionEntryReader> entryReaders;
    private final DiskIndex index;
    private @Nullable LogRecovery recovery;

    /// @param wake ends a wait of the log's thread
    MountedLog(LogIo io, DiskLogConfig config, SuperblockWriter superblockWriter, LogContext around, Runnable wake) {
        Superblock superblock = superblockWriter.current();
        int regionPages = superblock.geometry().regionPages();
        MemorySlicer memory = new MemorySlicer(around.memory().apply(bytes(regionPages, config)));
        this.io = io;
        this.config = config;
        this.index = around.index();
        regionTable = new RegionTable(superblock.geometry(), superblock.deviceId(), superblock.sequence());
        namespaces = new NamespaceTable(superblockWriter, io.logHealth(), around.sink());
        PagePool pages = new PagePool(memory.allocate(PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES));
        regionScan = new RegionScan(io, regionTable, pages);
        trailerWriter = new TrailerWriter(io, regionTable, memory.allocate(TrailerWriter.bytes(regionPages)));
        regionEraser = new RegionEraser(io, regionTable, pages, config.reclaim().discard());
        writer = new BatchWriter(
                io,
                new BatchWriter.Dependencies(regionTable, pages, trailerWriter, config.limits(), this::onAppendBegun));
        flushWaiters = new FlushWaiters(io, writer, trailerWriter);
        ChecksumPool checksumPool = new ChecksumPool(around.checksumExecutor(), wake);
        reads = new VerifyingReader(
                io, regionTable, around.sink(), config.limits().reads(), checksumPool);
        entryReaders = new ArrayList<>();
        for (int i = 0; i < LogRecovery.MAX_READERS; i++) {
            entryReaders.add(
                    new RegionEntryReader(io, regionTable, memory.allocate(RegionEntryReader.bytes(regionPages))));
        }
        RegionReclaimer.Dependencies dependencies = new RegionReclaimer.Dependencies(
                regionTable, entryReaders.getFirst(), writer, flushWaiters, regionEraser, index);
        regionReclaimer = new RegionReclaimer(
                io, dependencies, memory.allocate(config.reclaim().rewriteBytes()), config.reclaim());
    }

    private static long bytes(int regionPages, DiskLogConfig config) {
        return PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES
                + TrailerWriter.bytes(regionPages)
                + LogRecovery.MAX_READERS * RegionEntryReader.bytes(regionPages)
                + config.reclaim().rewriteBytes();
    }

    /// Cuts memory into spans, one after another.
    private static final class MemorySlicer {
        private final MemorySegment memory;
        private long at;

        MemorySlicer(MemorySegment memory) {
            this.memory = memory;
        }

        MemorySegment allocate(long bytes) {
            MemorySegment span = memory.asSlice(at, bytes);
            at += bytes;
            return span;
        }
    }

    /// Has every part do what it can do now.
    ///
    /// @return how much was done
    int pump() {
        int done = reads.pump();
        LogRecovery telling = recovery;
        if (telling == null) {
            regionScan.pump();
            if (!regionScan.isComplete() || io.logHealth().isWritingHalted()) {
                return done;
            }
            telling = new LogRecovery(
                    new LogRecovery.Dependencies(regionTable, index, trailerWriter, regionEraser, namespaces),
                    regionScan.newestFirst(),
                    entryReaders);
            recovery = telling;
            regionScan.unmarked().forEach(regionEraser::enqueue);
            io.logHealth().markServing();
        }
        done += io.logHealth().canRead() ? telling.pump(config.limits().recoveredPerTick()) : 0;
        namespaces.pump();
        done += writer.pump();
        trailerWriter.pump();
        flushWaiters.pump();
        if (telling.isComplete()) {
            regionReclaimer.pump();
        }
        regionEraser.pump();
        return done;
    }

    DiskGeometry geometry() {
        return regionTable.geometry();
    }

    NamespaceTable namespaces() {
        return namespaces;
    }

    private void onAppendBegun(DiskEntry entry) {
        regionReclaimer.onReplaced(entry);
    }

    BatchWriter writer() {
        return writer;
    }

    FlushWaiters flushWaiters() {
        return flushWaiters;
    }

    VerifyingReader reads() {
        return reads;
    }

    long epoch(long address) {
        return regionTable.regionAt(address).epoch();
    }

    void validate() {
        regionTable.validate();
        if (reads.isIdle()) {
            regionTable.requireUnread();
        }
    }

    boolean isRecovering() {
        return recovery == null || !recovery.isComplete();
    }

    boolean isIdle() {
        boolean asked = writer.isIdle() && flushWaiters.isIdle() && reads.isIdle();
        boolean upkeep = namespaces.isIdle()
                && trailerWriter.isIdle()
                && regionReclaimer.isIdle()
                && regionEraser.isIdle()
                && !isRecovering();
        return asked && (upkeep || io.logHealth().isWritingHalted());
    }

    DiskLogStats.Recovered recovered() {
        return recovery == null
                ? new DiskLogStats.Recovered(0, 0, 0, 0, 0, 0)
                : new DiskLogStats.Recovered(
                        recovery.entries(),
                        recovery.tombstones(),
                        recovery.invalidEntries(),
                        recovery.lostEntries(),
                        recovery.missingRegions(),
                        recovery.discardedRegions());
    }

    DiskLogStats.Reclaimed reclaimed() {
        return regionReclaimer.stats();
    }

    DiskLogStats.RegionCounts regionCounts() {
        return new DiskLogStats.RegionCounts(
                regionTable.count(Region.State.FREE),
                regionTable.count(Region.State.OPEN),
                regionTable.count(Region.State.CLOSING),
                regionTable.count(Region.State.CLOSED),
                regionTable.count(Region.State.RECLAIMING),
                regionTable.count(Region.State.FREEING),
                regionTable.count(Region.State.BAD));
    }
}
