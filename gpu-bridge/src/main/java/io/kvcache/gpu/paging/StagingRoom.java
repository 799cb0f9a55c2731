package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.Kernels;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Memory on the device where blocks lie whole on their way, and a list of where their pieces go: a copy
/// brings blocks there or from there, a kernel does the rest.
///
/// One work at a time, in one stream; what does not fit at once goes one part after the other, which the
/// stream itself keeps apart. The list is in registered memory and is written once for all of the work, so
/// that nothing here waits for the device.
///
/// **Threads.** The driver's.
public final class StagingRoom {

    private final StagedPages home;
    private final Kernels kernels;
    private final DeviceSpan blocks;
    private final DeviceSpan list;
    private final MemorySegment places;

    /// @param places registered, as large as the list on the device
    StagingRoom(StagedPages home, Kernels kernels, DeviceSpan blocks, DeviceSpan list, MemorySegment places) {
        this.home = home;
        this.kernels = kernels;
        this.blocks = blocks;
        this.list = list;
        this.places = places;
    }

    /// Brings blocks into pages.
    ///
    /// @param from host memory of each block, which stays until the stream has got past this
    /// @param pages of each block, each page once
    /// @param free reached when the pages may be written to, or null when they may now
    public void load(
            DeviceStream stream,
            PagedLayout layout,
            List<MemorySegment> from,
            List<int[]> pages,
            @Nullable DeviceEvent free) {
        int most = atOnce(layout, from.size());
        tell(stream, layout, pages, most, false);
        for (int first = 0; first < from.size(); first += most) {
            int count = Math.min(most, from.size() - first);
            CopyBatch whole = CopyBatch.toDevice();
            for (int i = 0; i < count; i++) {
                whole.add(from.get(first + i), place(layout, i));
            }
            stream.copy(whole);
            if (first == 0 && free != null) {
                stream.waitFor(free); // blocks may come before
            }
            run(stream, layout, first, count, from.size());
        }
    }

    /// Brings pages together in blocks.
    ///
    /// @param to host memory of each block, which stays until the stream has got past this
    /// @param pages of each block, each page once
    /// @param filled reached when the pages may be read, or null when they may now
    public void store(
            DeviceStream stream,
            PagedLayout layout,
            List<MemorySegment> to,
            List<int[]> pages,
            @Nullable DeviceEvent filled) {
        int most = atOnce(layout, to.size());
        tell(stream, layout, pages, most, true);
        if (filled != null) {
            stream.waitFor(filled);
        }
        for (int first = 0; first < to.size(); first += most) {
            int count = Math.min(most, to.size() - first);
            run(stream, layout, first, count, to.size());
            CopyBatch whole = CopyBatch.toHost();
            for (int i = 0; i < count; i++) {
                whole.add(to.get(first + i), place(layout, i));
            }
            stream.copy(whole);
        }
    }

    private int atOnce(PagedLayout layout, int count) {
        return (int) Math.min(count, blocks.bytes() / layout.blockBytes());
    }

    private DeviceAddress place(PagedLayout layout, int block) {
        return blocks.address().plus(block * layout.blockBytes());
    }

    private static int piecesOf(PagedLayout layout) {
        return Math.toIntExact(layout.blockBytes() / layout.pieceBytes());
    }

    /// Has the list on the device: where pieces are read, and behind all of these where they are written.
    private void tell(DeviceStream stream, PagedLayout layout, List<int[]> pages, int most, boolean together) {
        int all = pages.size() * piecesOf(layout);
        int at = 0;
        for (int block = 0; block < pages.size(); block++) {
            DeviceAddress room = place(layout, block % most);
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                for (int side = 0; side < layout.sides(); side++) {
                    for (int ordinal = 0; ordinal < layout.pagesPerBlock(); ordinal++) {
                        long page = layout.piece(layer, side, pages.get(block)[ordinal])
                                .value();
                        long here = room.plus(layout.offsetInBlock(layer, side, ordinal))
                                .value();
                        places.setAtIndex(JAVA_LONG, at, together ? page : here);
                        places.setAtIndex(JAVA_LONG, all + (long) at, together ? here : page);
                        at++;
                    }
                }
            }
        }
        stream.toDevice(places.asSlice(0, 2L * Long.BYTES * all), list.address());
    }

    private void run(DeviceStream stream, PagedLayout layout, int first, int count, int ofAll) {
        long each = (long) Long.BYTES * piecesOf(layout);
        kernels.copyPieces(
                stream,
                list.slice(first * each, count * each),
                list.slice((ofAll + first) * each, count * each),
                (int) layout.pieceBytes(),
                count * piecesOf(layout));
    }

    /// The device has done with it: others may have it.
    public void release() {
        home.isFree(this);
    }
}
