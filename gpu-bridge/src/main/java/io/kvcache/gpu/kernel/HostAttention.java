package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.gpu.kernel.AttentionKernels.Scales;
import io.kvcache.gpu.kernel.AttentionPlan.Piece;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// What [AttentionKernels] do, in plain Java over blocks in host memory, in float64: for engines without a device, and
/// to compare a device with. It needs no driver.
///
/// **Threads.** Any; a call uses its own.
public final class HostAttention {

    private final AttentionPlan plan;
    private final HostBlocks blocks;
    private final BlockShape shape;
    private final int dim;

    /// Where blocks lie.
    @FunctionalInterface
    public interface HostBlocks {

        /// Returns the bytes of block `block` of a sequence, as they were put.
        MemorySegment segment(int sequence, int block);
    }

    /// @param blocks of the plan's sequences; what is asked for has to stay until the calls have ended
    public HostAttention(AttentionPlan plan, HostBlocks blocks) {
        this.plan = plan;
        this.blocks = blocks;
        shape = plan.shape();
        dim = shape.headDim();
    }

    /// Attends in one layer.
    ///
    /// @param queries `[sequence][query head][dim]` in float32
    /// @param out as queries
    public void attend(int layer, Scales scales, MemorySegment queries, MemorySegment out) {
        int rows = plan.order().size() * plan.queryHeads();
        Partial[] results = new Partial[rows];
        Arrays.setAll(results, _ -> new Partial(dim));
        for (Piece piece : plan.pieces()) {
            for (int head = 0; head < shape.kvHeads(); head++) {
                attend(layer, scales, piece, head, queries, results);
            }
        }
        for (int row = 0; row < rows; row++) {
            for (int i = 0; i < dim; i++) {
                double value = results[row].values[i] / results[row].sum * scales.values();
                out.setAtIndex(JAVA_FLOAT_UNALIGNED, (long) row * dim + i, (float) value);
            }
        }
    }

    /// The tokens of a piece, each for all queries of the sequences that share it.
    private void attend(int layer, Scales scales, Piece piece, int head, MemorySegment queries, Partial[] results) {
        double[] key = new double[dim];
        double[] value = new double[dim];
        double scale = scales.keys() / Math.sqrt(dim);
        for (int token = 0; token < piece.tokens(); token++) {
            int within = token % shape.blockTokens();
            MemorySegment block = blocks.segment(piece.sequence(), piece.firstBlock() + token / shape.blockTokens());
            read(block, shape.tokenRow(layer, 0, head, within).offset(), key);
            read(block, shape.tokenRow(layer, 1, head, within).offset(), value);
            for (int place = piece.from(); place < piece.to(); place++) {
                int first = plan.order().get(place) * plan.queryHeads() + head * plan.sharing();
                for (int row = first; row < first + plan.sharing(); row++) {
                    double score = 0;
                    for (int i = 0; i < dim; i++) {
                        score += key[i] * queries.getAtIndex(JAVA_FLOAT_UNALIGNED, (long) row * dim + i);
                    }
                    results[row].add(score * scale, value);
                }
            }
        }
    }

    private void read(MemorySegment block, long offset, double[] into) {
        for (int i = 0; i < dim; i++) {
            into[i] = shape.dtype() == Dtype.BF16
                    ? Float.intBitsToFloat(block.get(JAVA_SHORT_UNALIGNED, offset + 2L * i) << Short.SIZE)
                    : ofE4m3(block.get(JAVA_BYTE, offset + i));
        }
    }

    /// The bits of a magnitude are those of a float that is 2^120 times smaller.
    private static double ofE4m3(byte code) {
        int magnitude = code & 0x7F;
        double value = magnitude == 0x7F ? Double.NaN : Math.scalb((double) Float.intBitsToFloat(magnitude << 20), 120);
        return code < 0 ? -value : value;
    }

    /// A weighted sum of values, and of weights, both over the largest weight by now.
    private static final class Partial {

        private final double[] values;
        private double most = Double.NEGATIVE_INFINITY;
        private double sum;

        Partial(int dim) {
            values = new double[dim];
        }

        void add(double score, double[] value) {
            if (score > most) {
                double fade = Math.exp(most - score);
                most = score;
                sum *= fade;
                for (int i = 0; i < values.length; i++) {
                    values[i] *= fade;
                }
            }
            double weight = Math.exp(score - most);
            sum += weight;
            for (int i = 0; i < values.length; i++) {
                values[i] += weight * value[i];
            }
        }
    }
}
