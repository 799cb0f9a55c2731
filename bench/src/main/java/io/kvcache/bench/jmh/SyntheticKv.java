package io.kvcache.bench.jmh;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.SplittableRandom;

/// Keys and values as a model's layer leaves them, from a seed: correlated from token to token, channels of many
/// scales, some with a large mean that all tokens share, keys turned by their position, and small first tokens.
///
/// Real ones cannot be shipped. These have the exponents that published measurements report: 2.8 bits of entropy.
public final class SyntheticKv {

    private static final ValueLayout.OfShort VALUE =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final double ROPE_BASE = 500_000;
    private static final int SINK_TOKENS = 2;

    /// What the values are like.
    public enum Content {
        /// Independent normal deviates.
        GAUSSIAN,
        /// As above.
        STRUCTURED,
        /// The same with four values of 2^16 times their size in each chunk of 64 KiB.
        OUTLIERS,
        /// The same with a tenth of zeros.
        ZEROS
    }

    private final SplittableRandom random;
    private final Content content;
    private final int dim;

    private SyntheticKv(long seed, Content content, int dim) {
        random = new SplittableRandom(seed);
        this.content = content;
        this.dim = dim;
    }

    /// Fills a block `[layers][2][heads][tokens][dim]` of bf16.
    ///
    /// @param block native memory
    public static void fill(MemorySegment block, Content content, int heads, int tokens, int dim) {
        long layerBytes = 2L * 2 * heads * tokens * dim;
        for (long layer = 0; layer * layerBytes < block.byteSize(); layer++) {
            SyntheticKv kv = new SyntheticKv(1000 + layer, content, dim);
            for (int head = 0; head < heads; head++) {
                MemorySegment keys =
                        block.asSlice(layer * layerBytes + (long) head * tokens * dim * 2, (long) tokens * dim * 2);
                MemorySegment values = block.asSlice(
                        layer * layerBytes + (long) (heads + head) * tokens * dim * 2, (long) tokens * dim * 2);
                kv.fillHead(keys, values, tokens);
            }
        }
        addSpecials(block, content);
    }

    private void fillHead(MemorySegment keys, MemorySegment values, int tokens) {
        boolean structured = content != Content.GAUSSIAN;
        double[] mean = new double[dim];
        double[] deviation = new double[dim];
        double[] valueScale = new double[dim];
        for (int d = 0; d < dim; d++) {
            deviation[d] = structured ? Math.exp(0.45 * random.nextGaussian()) : 1;
            mean[d] = structured ? 0.6 * deviation[d] * random.nextGaussian() : 0;
            valueScale[d] = structured ? 0.25 * Math.exp(0.35 * random.nextGaussian()) : 0.3;
        }
        for (int i = 0; structured && i < dim / 24; i++) {
            int low = dim / 2 - 1 - random.nextInt(dim / 6) + (random.nextBoolean() ? dim / 2 : 0);
            mean[low] = (random.nextBoolean() ? 1 : -1) * (4 + 8 * random.nextDouble());
            deviation[low] *= 1.5;
        }
        double[] key = new double[dim];
        double[] value = new double[dim];
        for (int token = 0; token < tokens; token++) {
            boolean sink = structured && token < SINK_TOKENS;
            double tokenScale = structured ? Math.exp(0.35 * random.nextGaussian()) * (sink ? 0.1 : 1) : 1;
            double[] row = new double[dim];
            for (int d = 0; d < dim; d++) {
                key[d] = follow(key[d], structured ? 0.6 : 0);
                value[d] = follow(value[d], structured ? 0.35 : 0);
                row[d] = (sink ? 0.3 : 1) * (mean[d] + deviation[d] * key[d]);
                put(values, token * dim + d, tokenScale * valueScale[d] * value[d]);
            }
            turn(row, token);
            for (int d = 0; d < dim; d++) {
                put(keys, token * dim + d, row[d]);
            }
        }
    }

    /// The next of a series in which neighbours are correlated.
    private double follow(double before, double correlation) {
        return correlation * before + Math.sqrt(1 - correlation * correlation) * random.nextGaussian();
    }

    private static void turn(double[] row, int token) {
        int half = row.length / 2;
        for (int pair = 0; pair < half; pair++) {
            double angle = token * Math.pow(ROPE_BASE, -2.0 * pair / row.length);
            double x = row[pair];
            double y = row[pair + half];
            row[pair] = x * Math.cos(angle) - y * Math.sin(angle);
            row[pair + half] = x * Math.sin(angle) + y * Math.cos(angle);
        }
    }

    private static void addSpecials(MemorySegment block, Content content) {
        SplittableRandom random = new SplittableRandom(9);
        for (int i = 0; i < block.byteSize() / 2; i++) {
            if (content == Content.OUTLIERS && i % 8192 == 0) {
                put(block, i, get(block, i) * (1 << 16));
            } else if (content == Content.ZEROS && random.nextInt(10) == 0) {
                put(block, i, 0);
            }
        }
    }

    private static float get(MemorySegment values, int index) {
        return Float.intBitsToFloat(values.get(VALUE, 2L * index) << 16);
    }

    /// Rounds to the nearest bf16, to the even one of two.
    private static void put(MemorySegment values, int index, double value) {
        int bits = Float.floatToRawIntBits((float) value);
        values.set(VALUE, 2L * index, (short) ((bits + 0x7FFF + (bits >>> 16 & 1)) >>> 16));
    }
}
