package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.Launcher.require;
import static io.kvcache.gpu.kernel.Launcher.requireAligned;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.KernelArguments;
import org.jspecify.annotations.Nullable;

/// Makes codes of an engine's values while it gathers them, and values of codes while it scatters them,
/// each in one pass over memory.
///
/// **Ownership, threads.** As of [Kernels].
public final class CodingKernels {

    private final Launcher launcher;
    private final DeviceKernel gather;
    private final DeviceKernel scatter;

    CodingKernels(Launcher launcher) {
        this.launcher = launcher;
        gather = launcher.kernel("kv_gather_coded");
        scatter = launcher.kernel("kv_scatter_coded");
    }

    /// How keys are turned on their way, as by [Kernels#ropeShift], before they are rounded.
    ///
    /// @param turns of [RopeTurns], on the device
    /// @param pairs that are turned; the values behind them are not
    /// @param halves whether value i goes with value i + pairs, and not 2i with 2i + 1
    /// @param sides 2 when keys and values take turns, 1 when all pieces are keys
    /// @param run pieces of one side in a row, keys first
    public record Turning(DeviceSpan turns, int pairs, boolean halves, int sides, int run) {

        public Turning {
            require(pairs > 0 && turns.bytes() >= 8L * pairs, "pairs", pairs);
            requireAligned("turns", turns, Float.BYTES);
            require(sides == 1 || sides == 2, "sides", sides);
            require(run > 0, "pieces in a row", run);
        }
    }

    /// Makes a block of pieces.
    ///
    /// @param from on the device, an address of 8 bytes for each piece of bf16 values
    /// @param into [CodedBlock#bytes], beginning at a multiple of 16
    public void gather(DeviceStream stream, DeviceSpan from, CodedBlock block, DeviceSpan into) {
        Launcher.requirePlaces(from, block.pieces());
        requireAligned("places", from, Long.BYTES);
        requireAligned("blocks", into, CodedBlock.ALIGNMENT);
        int groups = block.pieceValues() / block.group();
        launcher.run(
                stream,
                gather,
                Launcher.wideItems(block.values(), block.group()),
                new KernelArguments()
                        .with(from.address())
                        .withInt(groups)
                        .withInt(block.group())
                        .withInt(block.coding().bits())
                        .with((long) block.pieces())
                        .with(into.address())
                        .with(block.scales(into).address()));
    }

    /// Makes pieces of a block.
    ///
    /// @param from [CodedBlock#bytes], beginning at a multiple of 16
    /// @param to on the device, an address of 8 bytes for each piece, all apart
    /// @param rowValues values of one token and head; a divisor of a piece's
    /// @param turning of the keys among the pieces, or null for none
    public void scatter(
            DeviceStream stream,
            CodedBlock block,
            DeviceSpan from,
            DeviceSpan to,
            int rowValues,
            @Nullable Turning turning) {
        Launcher.requirePlaces(to, block.pieces());
        requireAligned("places", to, Long.BYTES);
        requireAligned("blocks", from, CodedBlock.ALIGNMENT);
        require(rowValues > 0 && block.pieceValues() % rowValues == 0, "values of a row", rowValues);
        int pairs = turning == null ? 0 : turning.pairs;
        require(2L * pairs <= rowValues, "pairs", pairs);
        int rows = block.pieceValues() / rowValues;
        launcher.run(
                stream,
                scatter,
                (long) block.pieces() * rows * (rowValues - pairs),
                new KernelArguments()
                        .with(from.address())
                        .with(block.scales(from).address())
                        .withInt(block.group())
                        .withInt(block.coding().bits())
                        .with(to.address())
                        .with((long) block.pieces())
                        .withInt(rows)
                        .withInt(rowValues)
                        .with(turning == null ? new DeviceAddress(0) : turning.turns.address())
                        .withInt(pairs)
                        .withInt(turning != null && turning.halves ? 1 : 0)
                        .withInt(turning == null ? 1 : turning.sides)
                        .withInt(turning == null ? 1 : turning.run));
    }
}
