package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;

/// Makes regions free, once nobody reads from them: the footer says so, a sync makes that durable, and then,
/// if asked for, their bytes are given back. Until then a crash brings back what they held, which is still
/// there.
final class Freeing {

    private final Io io;
    private final Regions regions;
    private final PagePool pages;
    private final boolean discard;
    private final Queue<Region> waiting = new ArrayDeque<>();
    private int busy;
    private long discardsRefused;

    Freeing(Io io, Regions regions, PagePool pages, boolean discard) {
        this.io = io;
        this.regions = regions;
        this.pages = pages;
        this.discard = discard;
    }

    /// Takes a region whose places are stale.
    void free(Region region) {
        region.become(Region.State.FREEING);
        waiting.add(region);
    }

    /// Regions that are about to be free, which nobody's slow reading holds up.
    int pending() {
        int unread =
                (int) waiting.stream().filter(region -> region.readers() == 0).count();
        return unread + busy;
    }

    boolean idle() {
        return waiting.isEmpty() && busy == 0;
    }

    void pump() {
        int count = io.condition().halted() ? 0 : waiting.size();
        for (int i = 0; i < count; i++) {
            Region region = waiting.remove();
            MemorySegment page = region.readers() == 0 ? pages.take() : null;
            if (page == null) {
                waiting.add(region);
            } else {
                busy++;
                mark(region, page);
            }
        }
    }

    private void mark(Region region, MemorySegment page) {
        regions.end(region.life());
        Footer.free(regions.lastLife(region), regions.over()).write(page);
        io.write(WriteKind.FREE_FOOTER, page, regions.footerOffset(region), done -> {
            pages.giveBack(page);
            if (done) {
                io.syncs().request(durable -> marked(region, durable));
            } else {
                end(region, Region.State.BAD);
            }
        });
    }

    private void marked(Region region, boolean durable) {
        if (!durable) {
            end(region, Region.State.BAD);
        } else if (discard) {
            long bytes = regions.geometry().regionBytes() - Geometry.PAGE_BYTES;
            io.transfers().add(Transfer.discard(regions.offset(region, 0), bytes, outcome -> {
                discardsRefused += outcome.isDone() ? 0 : 1;
                end(region, Region.State.FREE);
            }));
        } else {
            end(region, Region.State.FREE);
        }
    }

    private void end(Region region, Region.State state) {
        busy--;
        if (state == Region.State.FREE) {
            regions.freed(region);
        } else {
            region.become(state);
        }
    }

    long discardsRefused() {
        return discardsRefused;
    }
}
