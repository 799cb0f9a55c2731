package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;

/// Makes regions free, once nobody reads from them: the footer says so, a sync makes that durable, and then,
/// if asked for, their bytes are given back. Until then a crash brings back what they held, which is still
/// there.
final class RegionEraser {

    private final LogIo io;
    private final RegionTable regionTable;
    private final PagePool pages;
    private final boolean discard;
    private final Queue<Region> waiting = new ArrayDeque<>();
    private int inFlight;
    private long discardsRefused;

    RegionEraser(LogIo io, RegionTable regionTable, PagePool pages, boolean discard) {
        this.io = io;
        this.regionTable = regionTable;
        this.pages = pages;
        this.discard = discard;
    }

    /// Takes a region whose places are stale.
    void enqueue(Region region) {
        region.transitionTo(Region.State.FREEING);
        waiting.add(region);
    }

    /// Regions that are about to be free, which nobody's slow reading holds up.
    int pending() {
        int unread =
                (int) waiting.stream().filter(region -> region.readers() == 0).count();
        return unread + inFlight;
    }

    boolean isIdle() {
        return waiting.isEmpty() && inFlight == 0;
    }

    void pump() {
        int count = io.logHealth().isWritingHalted() ? 0 : waiting.size();
        for (int i = 0; i < count; i++) {
            Region region = waiting.remove();
            MemorySegment page = region.readers() == 0 ? pages.acquire() : null;
            if (page == null) {
                waiting.add(region);
            } else {
                inFlight++;
                writeFreeFooter(region, page);
            }
        }
    }

    private void writeFreeFooter(Region region, MemorySegment page) {
        regionTable.endEpoch(region.epoch());
        RegionFooter.free(regionTable.lastEpoch(region), regionTable.endedEpoch())
                .write(page);
        io.write(WriteKind.FREE_FOOTER, page, regionTable.footerOffset(region), done -> {
            pages.release(page);
            if (done) {
                io.sync(durable -> onFooterWritten(region, durable));
            } else {
                finish(region, Region.State.BAD);
            }
        });
    }

    private void onFooterWritten(Region region, boolean durable) {
        if (!durable) {
            finish(region, Region.State.BAD);
        } else if (discard) {
            long bytes = regionTable.geometry().regionBytes() - DiskGeometry.PAGE_BYTES;
            io.add(DeviceOperation.discard(regionTable.offset(region, 0), bytes, outcome -> {
                discardsRefused += outcome.isDone() ? 0 : 1;
                finish(region, Region.State.FREE);
            }));
        } else {
            finish(region, Region.State.FREE);
        }
    }

    private void finish(Region region, Region.State state) {
        inFlight--;
        if (state == Region.State.FREE) {
            regionTable.addFree(region);
        } else {
            region.transitionTo(state);
        }
    }

    long discardsRefused() {
        return discardsRefused;
    }
}
