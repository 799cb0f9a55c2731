package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.MemorySegment;

/// Puts together the copies between pages of an engine and blocks, one layer at a time.
///
/// Pages are checked before anything is added to a batch: whatever an engine says, nothing outside its
/// pool is touched. Several blocks go into one batch, as long as no page gets two of them.
///
/// @param layout of the engine's pool
public record PageCopyPlanner(PagedLayout layout) {

    /// Adds to a batch for host memory what a block takes of its pages.
    ///
    /// @param block native memory of [PagedLayout#blockBytes]
    public void addOffload(int[] pages, MemorySegment block, int layer, CopyBatch toHost) {
        require(pages, block.byteSize());
        forEachPiece(
                pages,
                layer,
                (offset, side, page) ->
                        toHost.add(block.asSlice(offset, layout.pieceBytes()), layout.pieceAddress(layer, side, page)));
    }

    /// Adds to a batch for the device what pages take of their block.
    ///
    /// @param block native memory of [PagedLayout#blockBytes]
    public void addOnboard(MemorySegment block, int[] pages, int layer, CopyBatch toDevice) {
        require(pages, block.byteSize());
        forEachPiece(
                pages,
                layer,
                (offset, side, page) -> toDevice.add(
                        block.asSlice(offset, layout.pieceBytes()), layout.pieceAddress(layer, side, page)));
    }

    /// Adds to a batch within the device what a block there takes of its pages.
    public void addGather(int[] pages, DeviceSpan block, int layer, CopyBatch within) {
        require(pages, block.bytes());
        forEachPiece(
                pages,
                layer,
                (offset, side, page) -> within.add(
                        layout.pieceAddress(layer, side, page), block.address().plus(offset), layout.pieceBytes()));
    }

    /// Adds to a batch within the device what pages take of a block there.
    public void addScatter(DeviceSpan block, int[] pages, int layer, CopyBatch within) {
        require(pages, block.bytes());
        forEachPiece(
                pages,
                layer,
                (offset, side, page) -> within.add(
                        block.address().plus(offset), layout.pieceAddress(layer, side, page), layout.pieceBytes()));
    }

    private void require(int[] pages, long blockBytes) {
        layout.requirePages(pages);
        if (blockBytes != layout.blockBytes()) {
            throw new IllegalArgumentException(
                    "a block of " + blockBytes + " bytes; this pool's have " + layout.blockBytes());
        }
    }

    private interface PieceAction {

        void use(long offsetInBlock, int side, int page);
    }

    private void forEachPiece(int[] pages, int layer, PieceAction pieceAction) {
        for (int side = 0; side < layout.sides(); side++) {
            for (int ordinal = 0; ordinal < pages.length; ordinal++) {
                pieceAction.use(layout.offsetInBlock(layer, side, ordinal), side, pages[ordinal]);
            }
        }
    }
}
