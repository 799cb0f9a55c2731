package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.require;

import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels.KernelLauncher;

/// How much queries want of each block of keys: the largest product of each query with a key of the block,
/// averaged over queries and heads and divided by the square root of the dimension.
///
/// From the keys themselves (as SnapKV does for its window of queries), or from the least and most of each
/// of their channels, which is a bound and takes a fraction of the reading (as in Quest).
///
/// **Ownership, threads.** As of [GpuKernels].
public final class AttentionScoreKernels {

    private final KernelLauncher launcher;
    private final DeviceKernel scoreKeys;
    private final DeviceKernel keyBounds;
    private final DeviceKernel scoreBounds;
    private final DeviceKernel means;

    AttentionScoreKernels(KernelLauncher launcher) {
        this.launcher = launcher;
        scoreKeys = launcher.kernel("kv_score_keys");
        keyBounds = launcher.kernel("kv_key_bounds");
        scoreBounds = launcher.kernel("kv_score_bounds");
        means = launcher.kernel("kv_score_means");
    }

    /// Keys of a block, `[tokens][heads][dim]` of bf16.
    public record KeyShape(int tokens, int heads, int dim) {

        public KeyShape {
            require(tokens > 0, "tokens", tokens);
            require(heads > 0, "heads", heads);
            require(dim > 0, "dim", dim);
        }

        int rowValues() {
            return Math.multiplyExact(heads, dim);
        }

        /// Bytes of the minimum and maximum of each channel of the given number of blocks.
        public long boundBytes(int blocks) {
            return 4L * rowValues() * blocks;
        }
    }

    /// Queries, `[count][heads][dim]` of bf16 on the device.
    ///
    /// @param heads a multiple of the heads of the keys, as many in a row sharing one
    public record Queries(DeviceSpan values, int count, int heads) {

        public Queries {
            require(count > 0, "queries", count);
            require(heads > 0, "heads of queries", heads);
        }

        /// Scratch bytes for scoring the given number of blocks.
        public long scratchBytes(int blocks) {
            return 4L * count * heads * blocks;
        }

        private void requireFit(KeyShape shape) {
            require(heads % shape.heads == 0, "heads of queries", heads);
            require(values.bytes() >= 2L * count * heads * shape.dim, "bytes of queries", values.bytes());
        }
    }

    /// Scores blocks by their keys.
    ///
    /// @param keys on the device, an address of 8 bytes for each block
    /// @param scratch of [Queries#scratchBytes]
    /// @param scores float32 for each block
    public void scoreKeys(
            DeviceStream stream,
            KeyShape shape,
            DeviceSpan keys,
            int blocks,
            Queries queries,
            DeviceSpan scratch,
            DeviceSpan scores) {
        KernelLauncher.requireAddressList(keys, blocks);
        requireFit(shape, blocks, queries, scratch, scores);
        launcher.launch(
                stream,
                scoreKeys,
                (long) blocks * (long) queries.count * queries.heads,
                keys.address().value(),
                shape.tokens,
                shape.heads,
                shape.dim,
                queries.values.address().value(),
                queries.count,
                queries.heads,
                blocks,
                scratch.address().value());
        average(stream, shape, blocks, queries, scratch, scores);
    }

    /// The least and most of each channel over the tokens of each block.
    ///
    /// @param bounds `[block][least, most][heads][dim]` of bf16, [KeyShape#boundBytes]
    public void computeBounds(DeviceStream stream, KeyShape shape, DeviceSpan keys, int blocks, DeviceSpan bounds) {
        KernelLauncher.requireAddressList(keys, blocks);
        require(bounds.bytes() >= shape.boundBytes(blocks), "bytes of bounds", bounds.bytes());
        launcher.launch(
                stream,
                keyBounds,
                (long) blocks * shape.rowValues(),
                keys.address().value(),
                shape.tokens,
                shape.rowValues(),
                blocks,
                bounds.address().value());
    }

    /// Scores blocks by what [#computeBounds] made of them: never less than [#scoreKeys] says, but for rounding.
    public void scoreBounds(
            DeviceStream stream,
            KeyShape shape,
            DeviceSpan bounds,
            int blocks,
            Queries queries,
            DeviceSpan scratch,
            DeviceSpan scores) {
        require(blocks > 0 && bounds.bytes() >= shape.boundBytes(blocks), "bytes of bounds", bounds.bytes());
        requireFit(shape, blocks, queries, scratch, scores);
        launcher.launch(
                stream,
                scoreBounds,
                (long) blocks * queries.count * queries.heads,
                bounds.address().value(),
                shape.heads,
                shape.dim,
                queries.values.address().value(),
                queries.count,
                queries.heads,
                blocks,
                scratch.address().value());
        average(stream, shape, blocks, queries, scratch, scores);
    }

    private static void requireFit(KeyShape shape, int blocks, Queries queries, DeviceSpan scratch, DeviceSpan scores) {
        queries.requireFit(shape);
        require(scratch.bytes() >= queries.scratchBytes(blocks), "scratch bytes", scratch.bytes());
        require(scores.bytes() >= 4L * blocks, "bytes of scores", scores.bytes());
    }

    /// Averages the largest product of each query with each block.
    private void average(
            DeviceStream stream, KeyShape shape, int blocks, Queries queries, DeviceSpan scratch, DeviceSpan scores) {
        launcher.launch(
                stream,
                means,
                blocks,
                scratch.address().value(),
                (long) queries.count * queries.heads,
                Float.floatToRawIntBits((float) (1 / Math.sqrt(shape.dim))),
                blocks,
                scores.address().value());
    }
}
