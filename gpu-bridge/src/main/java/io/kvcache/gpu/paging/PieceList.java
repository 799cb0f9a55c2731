package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Where the pieces of blocks in host memory and of an engine's pages lie, for a kernel that moves them.
///
/// One transfer at a time, in one stream. The list is written in registered host memory and copied to the device
/// from there, so that nothing here waits for the device.
///
/// **Threads.** The driver's.
public final class PieceList {

    private final HostPageCopier owner;
    private final GpuKernels kernels;
    private final DeviceSpan list;
    private final MemorySegment addresses;

    /// @param addresses registered, as large as the list on the device
    PieceList(HostPageCopier owner, GpuKernels kernels, DeviceSpan list, MemorySegment addresses) {
        this.owner = owner;
        this.kernels = kernels;
        this.list = list;
        this.addresses = addresses;
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
        move(stream, layout, from, pages, free, false);
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
        move(stream, layout, to, pages, filled, true);
    }

    private void move(
            DeviceStream stream,
            PagedLayout layout,
            List<MemorySegment> blocks,
            List<int[]> pages,
            @Nullable DeviceEvent ready,
            boolean together) {
        int count = blocks.size() * Math.toIntExact(layout.blockBytes() / layout.pieceBytes());
        int at = 0;
        for (int block = 0; block < blocks.size(); block++) {
            long host = blocks.get(block).address();
            int[] of = pages.get(block);
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                for (int side = 0; side < layout.sides(); side++) {
                    for (int ordinal = 0; ordinal < of.length; ordinal++) {
                        long page =
                                layout.pieceAddress(layer, side, of[ordinal]).value();
                        long here = host + layout.offsetInBlock(layer, side, ordinal);
                        addresses.setAtIndex(JAVA_LONG, at, together ? page : here);
                        addresses.setAtIndex(JAVA_LONG, count + (long) at, together ? here : page);
                        at++;
                    }
                }
            }
        }
        long half = (long) Long.BYTES * count;
        stream.copyToDevice(addresses.asSlice(0, 2 * half), list.address());
        if (ready != null) {
            stream.waitFor(ready); // the list may come before
        }
        kernels.copyPieces(stream, list.slice(0, half), list.slice(half, half), (int) layout.pieceBytes(), count);
    }

    /// Gives it back: the device has done with it.
    public void release() {
        owner.returnList(this);
    }
}
