package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;

/// Writes the trailers of regions that are full: once all their groups have ended the table, and when a sync has
/// made groups and table durable the footer. So a footer that says CLOSED vouches for all of them, and where one is
/// not found it was damaged. The footer before it, which says FREE, is not touched while the first head may still
/// be lost. Trailers are written in the order of lives, so one vouches for that before it
/// ([RegionTrailer.RegionPredecessor]).
final class TrailerWriter {

    private final LogIo io;
    private final RegionTable regionTable;
    private final MemorySegment buffer;
    private final Deque<OpenRegion> waiting = new ArrayDeque<>();
    private boolean writing;

    /// @param buffer [#bytes] of it
    TrailerWriter(LogIo io, RegionTable regionTable, MemorySegment buffer) {
        this.io = io;
        this.regionTable = regionTable;
        this.buffer = buffer;
    }

    /// Memory for regions of so many pages.
    static long bytes(int regionPages) {
        return (1L + RegionTrailer.maxTablePages(regionPages)) * DiskGeometry.PAGE_BYTES;
    }

    void enqueue(OpenRegion full) {
        full.region().transitionTo(Region.State.CLOSING);
        waiting.add(full);
    }

    /// Whether there are groups that are found by a trailer alone, and it is not written yet.
    boolean hasBrokenRegion() {
        return waiting.stream().anyMatch(OpenRegion::isBroken);
    }

    boolean isIdle() {
        return waiting.isEmpty();
    }

    void pump() {
        if (writing || io.logHealth().isWritingHalted()) {
            return;
        }
        OpenRegion first = waiting.peek();
        if (first != null && first.inFlight() == 0) {
            writing = true;
            write(first);
        }
    }

    private void write(OpenRegion full) {
        RegionTrailer trailer = full.toTrailer(regionTable.endedEpoch());
        int pages = RegionTrailer.pages(trailer.entries().size());
        int regionPages = regionTable.geometry().regionPages();
        MemorySegment target = buffer.asSlice(0, (long) pages * DiskGeometry.PAGE_BYTES);
        trailer.write(target, regionPages);
        long tableBytes = target.byteSize() - DiskGeometry.PAGE_BYTES;
        MemorySegment footer = target.asSlice(tableBytes);
        if (tableBytes == 0) {
            writeFooter(full, footer);
            return;
        }
        long offset = regionTable.offset(full.region(), regionPages - pages);
        io.write(WriteKind.TRAILER, target.asSlice(0, tableBytes), offset, done -> {
            if (done) {
                writeFooter(full, footer);
            } else {
                fail(full);
            }
        });
    }

    private void writeFooter(OpenRegion full, MemorySegment footer) {
        io.sync(durable -> {
            if (durable) {
                io.write(WriteKind.TRAILER, footer, regionTable.footerOffset(full.region()), done -> {
                    if (done) {
                        writing = false;
                        waiting.remove(full);
                        regionTable.addClosed(full.region());
                    } else {
                        fail(full);
                    }
                });
            }
        });
    }

    private void fail(OpenRegion full) {
        io.logHealth().stopWriting("the trailer of region " + full.region().index() + " cannot be written");
    }
}
