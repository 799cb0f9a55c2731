package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.KernelLauncher.require;
import static io.kvcache.gpu.kernel.KernelLauncher.requireAligned;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.KernelArguments;
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
    /// @param angles of [RopeShift], on the device
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
                new KernelArguments()
                        .with(from.address())
                        .withInt(groups)
                        .withInt(block.group())
                        .withInt(block.quantizationFormat().bits())
                        .with((long) block.pieces())
                        .with(into.address())
                        .with(block.scales(into).address()));
    }

    /// Makes pieces of a block.
    ///
    /// @param from [QuantizedBlock#bytes], beginning at a multiple of 16
    /// @param to on the device, an address of 8 bytes for each piece, all apart
    /// @param rowValues values of one token and head; a divisor of a piece's
    /// @param ropeParameters of the keys among the pieces, or null for none
    public void scatter(
            DeviceStream stream,
            QuantizedBlock block,
            DeviceSpan from,
            DeviceSpan to,
            int rowValues,
            @Nullable RopeParameters ropeParameters) {
        KernelLauncher.requireAddressList(to, block.pieces());
        requireAligned("places", to, Long.BYTES);
        requireAligned("blocks", from, QuantizedBlock.ALIGNMENT);
        require(rowValues > 0 && block.pieceValues() % rowValues == 0, "values of a row", rowValues);
        int pairs = ropeParameters == null ? 0 : ropeParameters.pairs;
        require(2L * pairs <= rowValues, "pairs", pairs);
        int rows = block.pieceValues() / rowValues;
        launcher.launch(
                stream,
                scatter,
                (long) block.pieces() * rows * (rowValues - pairs),
                new KernelArguments()
                        .with(from.address())
                        .with(block.scales(from).address())
                        .withInt(block.group())
                        .withInt(block.quantizationFormat().bits())
                        .with(to.address())
                        .with((long) block.pieces())
                        .withInt(rows)
                        .withInt(rowValues)
                        .with(ropeParameters == null ? new DeviceAddress(0) : ropeParameters.angles.address())
                        .withInt(pairs)
                        .withInt(ropeParameters != null && ropeParameters.halves ? 1 : 0)
                        .withInt(ropeParameters == null ? 1 : ropeParameters.sides)
                        .withInt(ropeParameters == null ? 1 : ropeParameters.run));
    }
}
