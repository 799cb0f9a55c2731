package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.KernelLauncher.require;

import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.KernelArguments;

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

        /// Bytes of the least and most of each channel of so many blocks.
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

        /// Bytes to score so many blocks with.
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
        KernelArguments subject = new KernelArguments().with(keys.address()).withInt(shape.tokens);
        new ScoreLaunch(stream, shape, blocks, queries, scratch).run(scoreKeys, subject, scores);
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
                new KernelArguments()
                        .with(keys.address())
                        .withInt(shape.tokens)
                        .withInt(shape.rowValues())
                        .with((long) blocks)
                        .with(bounds.address()));
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
        KernelArguments subject = new KernelArguments().with(bounds.address());
        new ScoreLaunch(stream, shape, blocks, queries, scratch).run(scoreBounds, subject, scores);
    }

    /// One question about some blocks.
    private final class ScoreLaunch {

        private final DeviceStream stream;
        private final KeyShape shape;
        private final int blocks;
        private final Queries queries;
        private final DeviceSpan scratch;

        ScoreLaunch(DeviceStream stream, KeyShape shape, int blocks, Queries queries, DeviceSpan scratch) {
            queries.requireFit(shape);
            require(scratch.bytes() >= queries.scratchBytes(blocks), "scratch bytes", scratch.bytes());
            this.stream = stream;
            this.shape = shape;
            this.blocks = blocks;
            this.queries = queries;
            this.scratch = scratch;
        }

        /// Both launches: the largest product of each query with each block, and their means.
        ///
        /// @param subject the arguments that say what the products are with
        void run(DeviceKernel products, KernelArguments subject, DeviceSpan scores) {
            require(scores.bytes() >= 4L * blocks, "bytes of scores", scores.bytes());
            subject.withInt(shape.heads)
                    .withInt(shape.dim)
                    .with(queries.values.address())
                    .withInt(queries.count)
                    .withInt(queries.heads)
                    .with((long) blocks)
                    .with(scratch.address());
            launcher.launch(stream, products, (long) blocks * queries.count * queries.heads, subject);
            KernelArguments averaging = new KernelArguments()
                    .with(scratch.address())
                    .withInt(queries.count * queries.heads)
                    .withInt(Float.floatToRawIntBits((float) (1 / Math.sqrt(shape.dim))))
                    .with((long) blocks)
                    .with(scores.address());
            launcher.launch(stream, means, blocks, averaging);
        }
    }
}
