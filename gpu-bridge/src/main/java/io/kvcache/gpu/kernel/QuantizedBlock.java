package io.kvcache.gpu.kernel;

import io.kvcache.gpu.driver.DeviceSpan;

/// A block of coded values: the codes of all pieces, one after the other, then the scales of all groups,
/// in the same order. So a block brings its scales along wherever it goes.
///
/// @param quantizationFormat how
/// @param group values that share scales: even, and a divisor of `pieceValues`
/// @param pieceValues values of a piece
/// @param pieces of the block
public record QuantizedBlock(QuantizationFormat quantizationFormat, int group, int pieceValues, int pieces) {

    /// What blocks and their scales begin at a multiple of.
    static final int ALIGNMENT = 16;

    /// Checks that groups do not cross pieces.
    public QuantizedBlock {
        KernelLauncher.require(pieces > 0, "pieces", pieces);
        KernelLauncher.require(group > 0 && group % 2 == 0, "values of a group", group);
        KernelLauncher.require(pieceValues > 0 && pieceValues % group == 0, "values of a piece", pieceValues);
    }

    /// Values of the block.
    public long valueCount() {
        return (long) pieceValues * pieces;
    }

    /// Where the scales begin.
    long scalesOffset() {
        return (quantizationFormat.codeBytes(valueCount()) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    /// Bytes of the block.
    public long bytes() {
        return scalesOffset() + quantizationFormat.scaleBytes(valueCount() / group);
    }

    /// The scales of a block that lies there.
    ///
    /// @throws IndexOutOfBoundsException when it is shorter than a block
    DeviceSpan scales(DeviceSpan block) {
        return block.slice(scalesOffset(), quantizationFormat.scaleBytes(valueCount() / group));
    }
}
