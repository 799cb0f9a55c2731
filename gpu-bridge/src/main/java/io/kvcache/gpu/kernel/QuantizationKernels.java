package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.require;
import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.requireAligned;

import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels.KernelLauncher;
import org.jspecify.annotations.Nullable;

/// Makes codes of an engine's values while it gathers them, and values of codes while it scatters them,
/// each in one pass over memory.
///
/// **Ownership, threads.** As of [GpuKernels].
public final class QuantizationKernels {

    private final KernelLauncher launcher;
    private final DeviceKernel gather;
    private final DeviceKernel scatter;

    QuantizationKernels(KernelLauncher launcher) {
        this.launcher = launcher;
        gather = launcher.kernel("kv_gather_coded");
        scatter = launcher.kernel("kv_scatter_coded");
    }

    /// How keys are turned on their way, as by [GpuKernels#ropeShift], before they are rounded.
    ///
    /// @param angles of [GpuKernels#ropeAngles], on the device
    /// @param pairs that are turned; the values behind them are not
    /// @param halves whether value i goes with value i + pairs, and not 2i with 2i + 1
    /// @param sides 2 when keys and values take turns, 1 when all pieces are keys
    /// @param run pieces of one side in a row, keys first
    public record RopeParameters(DeviceSpan angles, int pairs, boolean halves, int sides, int run) {

        public RopeParameters {
            require(pairs > 0 && angles.bytes() >= 8L * pairs, "pairs", pairs);
            requireAligned("turns", angles, Float.BYTES);
            require(sides == 1 || sides == 2, "sides", sides);
            require(run > 0, "pieces in a row", run);
        }
    }

    /// Makes a block of pieces.
    ///
    /// @param from on the device, an address of 8 bytes for each piece of bf16 values
    /// @param into [QuantizedBlock#bytes], beginning at a multiple of 16
    public void gather(DeviceStream stream, DeviceSpan from, QuantizedBlock block, DeviceSpan into) {
        KernelLauncher.requireAddressList(from, block.pieces());
        requireAligned("places", from, Long.BYTES);
        requireAligned("blocks", into, QuantizedBlock.ALIGNMENT);
        int groups = block.pieceValues() / block.group();
        launcher.launch(
                stream,
                gather,
                KernelLauncher.vectorItems(block.valueCount(), block.group()),
                from.address().value(),
                groups,
                block.group(),
                block.quantizationFormat().bits(),
                block.pieces(),
                into.address().value(),
                block.scales(into).address().value());
    }

    /// Makes pieces of a block.
    ///
    /// @param from [QuantizedBlock#bytes], beginning at a multiple of 16
    /// @param to on the device, an address of 8 bytes for each piece, all apart
    /// @param rowValues values of one token and head; a divisor of a piece's
    /// @param rope of the keys among the pieces, or null for none
    public void scatter(
            DeviceStream stream,
            QuantizedBlock block,
            DeviceSpan from,
            DeviceSpan to,
            int rowValues,
            @Nullable RopeParameters rope) {
        KernelLauncher.requireAddressList(to, block.pieces());
        requireAligned("places", to, Long.BYTES);
        requireAligned("blocks", from, QuantizedBlock.ALIGNMENT);
        require(rowValues > 0 && block.pieceValues() % rowValues == 0, "values of a row", rowValues);
        int pairs = rope == null ? 0 : rope.pairs;
        require(2L * pairs <= rowValues, "pairs", pairs);
        int rows = block.pieceValues() / rowValues;
        launcher.launch(
                stream,
                scatter,
                (long) block.pieces() * rows * (rowValues - pairs),
                from.address().value(),
                block.scales(from).address().value(),
                block.group(),
                block.quantizationFormat().bits(),
                to.address().value(),
                block.pieces(),
                rows,
                rowValues,
                rope == null ? 0 : rope.angles.address().value(),
                pairs,
                rope != null && rope.halves ? 1 : 0,
                rope == null ? 1 : rope.sides,
                rope == null ? 1 : rope.run);
    }

    /// A block of coded values: the codes of all pieces, one after the other, then the scales of all groups,
    /// in the same order. So a block brings its scales along wherever it goes.
    ///
    /// @param quantizationFormat how
    /// @param group values that share scales: even, and a divisor of `pieceValues`
    /// @param pieceValues values of a piece
    /// @param pieces of the block
    public record QuantizedBlock(QuantizationFormat quantizationFormat, int group, int pieceValues, int pieces) {

        /// Alignment of blocks and of their scales.
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

    /// How values of bf16 are made smaller: a code for each, and scales for each group of them.
    public enum QuantizationFormat {
        /// A byte a value (e4m3), and a scale in float32 a group, by which the largest becomes 448.
        FP8(8, 1),
        /// Half a byte a value, and in float32 a step and a lowest value a group, by which 16 even steps go from
        /// the lowest to the highest. A NaN becomes the lowest.
        INT4(4, 2);

        private final int bits;
        private final int numbers;

        QuantizationFormat(int bits, int numbers) {
            this.bits = bits;
            this.numbers = numbers;
        }

        int bits() {
            return bits;
        }

        long codeBytes(long values) {
            return values * bits / Byte.SIZE;
        }

        long scaleBytes(long groups) {
            return groups * numbers * Float.BYTES;
        }
    }
}
