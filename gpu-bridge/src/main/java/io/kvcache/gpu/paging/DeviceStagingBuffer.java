package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Memory on the device where blocks lie whole on their way, or one part after the other of those
/// that are larger than it, and a list of where their pieces go: a copy brings blocks there or from
/// there, a kernel does the rest.
///
/// One work at a time, in one stream; what does not fit at once goes one part after the other, which the
/// stream itself keeps apart. The list is in registered memory and is written once for all of the work, so
/// that nothing here waits for the device.
///
/// **Threads.** The driver's.
public final class DeviceStagingBuffer {

    private final StagedCopier owner;
    private final GpuKernels kernels;
    private final DeviceSpan blocks;
    private final DeviceSpan list;
    private final MemorySegment addresses;

    /// @param places registered, as large as the list on the device
    DeviceStagingBuffer(
            StagedCopier home, GpuKernels kernels, DeviceSpan blocks, DeviceSpan list, MemorySegment places) {
        this.owner = home;
        this.kernels = kernels;
        this.blocks = blocks;
        this.list = list;
        this.addresses = places;
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
        int all = from.size() * piecesPerBlock(layout);
        int most = piecesPerRound(layout);
        uploadAddressList(stream, layout, pages, most, false);
        for (int first = 0; first < all; first += most) {
            int count = Math.min(most, all - first);
            CopyBatch whole = CopyBatch.toDevice();
            addBlockCopies(layout, from, first, count, whole);
            stream.copy(whole);
            if (first == 0 && free != null) {
                stream.waitFor(free); // blocks may come before
            }
            copyPieces(stream, layout, first, count, all);
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
        int all = to.size() * piecesPerBlock(layout);
        int most = piecesPerRound(layout);
        uploadAddressList(stream, layout, pages, most, true);
        if (filled != null) {
            stream.waitFor(filled);
        }
        for (int first = 0; first < all; first += most) {
            int count = Math.min(most, all - first);
            copyPieces(stream, layout, first, count, all);
            CopyBatch whole = CopyBatch.toHost();
            addBlockCopies(layout, to, first, count, whole);
            stream.copy(whole);
        }
    }

    /// Pieces that fit in here: whole blocks, or where not even one does, as much of one as there
    /// is room for.
    private int piecesPerRound(PagedLayout layout) {
        long whole = blocks.bytes() / layout.blockBytes();
        return Math.toIntExact(whole > 0 ? whole * piecesPerBlock(layout) : blocks.bytes() / layout.pieceBytes());
    }

    private static int piecesPerBlock(PagedLayout layout) {
        return Math.toIntExact(layout.blockBytes() / layout.pieceBytes());
    }

    /// Pieces lie in a block one behind the other, and so do blocks in here: a copy for each block,
    /// or for what is here of it.
    ///
    /// @param first piece, counted from the first block's first
    private void addBlockCopies(PagedLayout layout, List<MemorySegment> host, int first, int count, CopyBatch into) {
        int each = piecesPerBlock(layout);
        for (int done = 0; done < count; ) {
            int from = (first + done) % each;
            int some = Math.min(each - from, count - done);
            MemorySegment block = host.get((first + done) / each);
            into.add(block.asSlice(from * layout.pieceBytes(), some * layout.pieceBytes()), pieceAddress(layout, done));
            done += some;
        }
    }

    private DeviceAddress pieceAddress(PagedLayout layout, int piece) {
        return blocks.address().plus(piece * layout.pieceBytes());
    }

    /// Has the list on the device: where pieces are read, and behind all of these where they are written.
    private void uploadAddressList(
            DeviceStream stream, PagedLayout layout, List<int[]> pages, int most, boolean together) {
        int all = pages.size() * piecesPerBlock(layout);
        int at = 0;
        for (int[] of : pages) {
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                for (int side = 0; side < layout.sides(); side++) {
                    for (int ordinal = 0; ordinal < layout.pagesPerBlock(); ordinal++) {
                        long page =
                                layout.pieceAddress(layer, side, of[ordinal]).value();
                        long here = pieceAddress(layout, at % most).value();
                        addresses.setAtIndex(JAVA_LONG, at, together ? page : here);
                        addresses.setAtIndex(JAVA_LONG, all + (long) at, together ? here : page);
                        at++;
                    }
                }
            }
        }
        stream.copyToDevice(addresses.asSlice(0, 2L * Long.BYTES * all), list.address());
    }

    private void copyPieces(DeviceStream stream, PagedLayout layout, int first, int count, int ofAll) {
        long place = Long.BYTES;
        kernels.copyPieces(
                stream,
                list.slice(first * place, count * place),
                list.slice((ofAll + first) * place, count * place),
                (int) layout.pieceBytes(),
                count);
    }

    /// The device has done with it: others may have it.
    public void release() {
        owner.returnBuffer(this);
    }
}
