package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;

/// Writes the trailers of regions that are full: once all their groups have ended the table, and when a sync has
/// made groups and table durable the footer. So a footer that says CLOSED vouches for all of them, and where one is
/// not found it was damaged. The footer before it, which says FREE, is not touched while the first head may still be
/// lost. Trailers are written in the order of lives, so one vouches for that before it ([Predecessor]).
final class Closing {

    private final Io io;
    private final Regions regions;
    private final MemorySegment buffer;
    private final Deque<OpenRegion> waiting = new ArrayDeque<>();
    private boolean busy;

    /// @param buffer [#bytes] of it
    Closing(Io io, Regions regions, MemorySegment buffer) {
        this.io = io;
        this.regions = regions;
        this.buffer = buffer;
    }

    /// Memory for regions of so many pages.
    static long bytes(int regionPages) {
        return (1L + Trailer.maxTablePages(regionPages)) * Geometry.PAGE_BYTES;
    }

    void close(OpenRegion full) {
        full.region().become(Region.State.CLOSING);
        waiting.add(full);
    }

    /// Whether there are groups that are found by a trailer alone, and it is not written yet.
    boolean broken() {
        return waiting.stream().anyMatch(OpenRegion::broken);
    }

    boolean idle() {
        return waiting.isEmpty();
    }

    void pump() {
        if (busy || io.condition().halted()) {
            return;
        }
        OpenRegion first = waiting.peek();
        if (first != null && first.flying() == 0) {
            busy = true;
            write(first);
        }
    }

    private void write(OpenRegion full) {
        Trailer trailer = full.trailer(regions.over());
        int pages = Trailer.pages(trailer.entries().size());
        int regionPages = regions.geometry().regionPages();
        MemorySegment target = buffer.asSlice(0, (long) pages * Geometry.PAGE_BYTES);
        trailer.write(target, regionPages);
        long tableBytes = target.byteSize() - Geometry.PAGE_BYTES;
        MemorySegment footer = target.asSlice(tableBytes);
        if (tableBytes == 0) {
            writeFooter(full, footer);
            return;
        }
        long offset = regions.offset(full.region(), regionPages - pages);
        io.write(WriteKind.TRAILER, target.asSlice(0, tableBytes), offset, done -> {
            if (done) {
                writeFooter(full, footer);
            } else {
                fail(full);
            }
        });
    }

    private void writeFooter(OpenRegion full, MemorySegment footer) {
        io.syncs().request(durable -> {
            if (durable) {
                io.write(WriteKind.TRAILER, footer, regions.footerOffset(full.region()), done -> {
                    if (done) {
                        busy = false;
                        waiting.remove(full);
                        regions.closed(full.region());
                    } else {
                        fail(full);
                    }
                });
            }
        });
    }

    private void fail(OpenRegion full) {
        io.condition().stopWriting("the trailer of region " + full.region().index() + " cannot be written");
    }
}
