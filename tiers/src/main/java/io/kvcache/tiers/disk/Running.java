package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The parts of a log whose device has been mounted, and the order in which they do their work.
final class Running {

    private final Io io;
    private final DiskLogConfig config;
    private final Regions regions;
    private final NamespaceTable namespaces;
    private final Census census;
    private final Closing closing;
    private final Freeing freeing;
    private final GroupWriter writer;
    private final Flushes flushes;
    private final BlockReads reads;
    private final Reclaim reclaim;
    private final List<RegionEntries> lanes;
    private final DiskIndex index;
    private @Nullable Recovery recovery;

    /// @param wake ends a wait of the log's thread
    Running(Io io, DiskLogConfig config, Superblocks superblocks, Surroundings around, Runnable wake) {
        Superblock superblock = superblocks.current();
        int regionPages = superblock.geometry().regionPages();
        Carving memory = new Carving(around.memory().apply(bytes(regionPages, config)));
        this.io = io;
        this.config = config;
        this.index = around.index();
        regions = new Regions(superblock.geometry(), superblock.deviceId(), superblock.sequence());
        namespaces = new NamespaceTable(superblocks, io.condition(), around.sink());
        PagePool pages = new PagePool(memory.next(PagePool.PAGES * (long) Geometry.PAGE_BYTES));
        census = new Census(io, regions, pages);
        closing = new Closing(io, regions, memory.next(Closing.bytes(regionPages)));
        freeing = new Freeing(io, regions, pages, config.reclaim().discard());
        writer = new GroupWriter(io, new GroupWriter.Parts(regions, pages, closing, config.limits(), this::begun));
        flushes = new Flushes(io, writer, closing);
        Checks checks = new Checks(around.checking(), wake);
        reads = new BlockReads(io, regions, around.sink(), config.limits().reads(), checks);
        lanes = new ArrayList<>();
        for (int i = 0; i < Recovery.LANES; i++) {
            lanes.add(new RegionEntries(io, regions, memory.next(RegionEntries.bytes(regionPages))));
        }
        Reclaim.Parts parts = new Reclaim.Parts(regions, lanes.getFirst(), writer, flushes, freeing, index);
        reclaim = new Reclaim(io, parts, memory.next(config.reclaim().rewriteBytes()), config.reclaim());
    }

    private static long bytes(int regionPages, DiskLogConfig config) {
        return PagePool.PAGES * (long) Geometry.PAGE_BYTES
                + Closing.bytes(regionPages)
                + Recovery.LANES * RegionEntries.bytes(regionPages)
                + config.reclaim().rewriteBytes();
    }

    /// Cuts memory into spans, one after another.
    private static final class Carving {
        private final MemorySegment memory;
        private long at;

        Carving(MemorySegment memory) {
            this.memory = memory;
        }

        MemorySegment next(long bytes) {
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
        Recovery telling = recovery;
        if (telling == null) {
            census.pump();
            if (!census.ended() || io.condition().halted()) {
                return done;
            }
            telling = new Recovery(
                    new Recovery.Target(regions, index, closing, freeing, namespaces), census.newestFirst(), lanes);
            recovery = telling;
            census.unmarked().forEach(freeing::free);
            io.condition().serve();
        }
        done += io.condition().reads() ? telling.pump(config.limits().recoveredPerTick()) : 0;
        namespaces.pump();
        done += writer.pump();
        closing.pump();
        flushes.pump();
        if (telling.ended()) {
            reclaim.pump();
        }
        freeing.pump();
        return done;
    }

    Geometry geometry() {
        return regions.geometry();
    }

    NamespaceTable namespaces() {
        return namespaces;
    }

    private void begun(DiskEntry entry) {
        reclaim.replaced(entry);
    }

    GroupWriter writer() {
        return writer;
    }

    Flushes flushes() {
        return flushes;
    }

    BlockReads reads() {
        return reads;
    }

    long life(long place) {
        return regions.at(place).life();
    }

    void validate() {
        regions.validate();
        if (reads.idle()) {
            regions.requireUnread();
        }
    }

    boolean recovering() {
        return recovery == null || !recovery.ended();
    }

    boolean idle() {
        boolean asked = writer.idle() && flushes.idle() && reads.idle();
        boolean upkeep = namespaces.idle() && closing.idle() && reclaim.idle() && freeing.idle() && !recovering();
        return asked && (upkeep || io.condition().halted());
    }

    DiskLogStats.Recovered recovered() {
        return recovery == null
                ? new DiskLogStats.Recovered(0, 0, 0, 0, 0, 0)
                : new DiskLogStats.Recovered(
                        recovery.entries(),
                        recovery.tombstones(),
                        recovery.strange(),
                        recovery.lost(),
                        recovery.missing(),
                        recovery.forgotten());
    }

    DiskLogStats.Reclaimed reclaimed() {
        return reclaim.stats();
    }

    DiskLogStats.RegionCounts regionCounts() {
        return new DiskLogStats.RegionCounts(
                regions.count(Region.State.FREE),
                regions.count(Region.State.OPEN),
                regions.count(Region.State.CLOSING),
                regions.count(Region.State.CLOSED),
                regions.count(Region.State.RECLAIMING),
                regions.count(Region.State.FREEING),
                regions.count(Region.State.BAD));
    }
}
