package io.kvcache.gpu.kernel;

import io.kvcache.gpu.driver.DeviceSpan;

/// A block of coded values: the codes of all pieces, one after the other, then the scales of all groups,
/// in the same order. So a block brings its scales along wherever it goes.
///
/// @param coding how
/// @param group values that share scales: even, and a divisor of `pieceValues`
/// @param pieceValues values of a piece
/// @param pieces of the block
public record CodedBlock(Coding coding, int group, int pieceValues, int pieces) {

    /// What blocks and their scales begin at a multiple of.
    static final int ALIGNMENT = 16;

    /// Checks that groups do not cross pieces.
    public CodedBlock {
        Launcher.require(pieces > 0, "pieces", pieces);
        Launcher.require(group > 0 && group % 2 == 0, "values of a group", group);
        Launcher.require(pieceValues > 0 && pieceValues % group == 0, "values of a piece", pieceValues);
    }

    /// Values of the block.
    public long values() {
        return (long) pieceValues * pieces;
    }

    /// Where the scales begin.
    long scalesAt() {
        return (coding.codeBytes(values()) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    /// Bytes of the block.
    public long bytes() {
        return scalesAt() + coding.scaleBytes(values() / group);
    }

    /// The scales of a block that lies there.
    ///
    /// @throws IndexOutOfBoundsException when it is shorter than a block
    DeviceSpan scales(DeviceSpan block) {
        return block.slice(scalesAt(), coding.scaleBytes(values() / group));
    }
}
