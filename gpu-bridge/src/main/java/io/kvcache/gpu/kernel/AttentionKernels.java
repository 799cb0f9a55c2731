package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.require;
import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.requireAligned;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels.KernelLauncher;

/// Attention of decoding over blocks: one query of each sequence and head over the keys and values of all tokens before
/// it. Blocks that several sequences share are read once for all of them, then each sequence's own, and both are merged
/// by their log-sum-exp, which is exact (ChunkAttention's two phases).
///
/// It is for small engines, and shows that tables are right; kernels of large engines are faster.
/// [HostAttention] does the same without a device.
///
/// **Ownership, threads.** As of [GpuKernels].
public final class AttentionKernels {

    private static final int LANES = 32;

    private final KernelLauncher launcher;
    private final DeviceKernel attend;
    private final DeviceKernel merge;

    AttentionKernels(KernelLauncher launcher) {
        this.launcher = launcher;
        attend = launcher.kernel("kv_attend");
        merge = launcher.kernel("kv_attend_merge");
    }

    /// By what fp8 was divided when it was made, one number for the keys and one for the values of a layer.
    public record Scales(float keys, float values) {

        /// Of values that are stored as they are.
        public static final Scales NONE = new Scales(1, 1);
    }

    /// Attends in one layer.
    ///
    /// @param plan on the device, as [AttentionPlan#write] writes it; its addresses are of blocks as they were put
    /// @param queries `[sequence][query head][dim]` of bf16
    /// @param scratch of [AttentionPlan#scratchBytes]
    /// @param out as queries
    public void attend(
            DeviceStream stream,
            AttentionPlan step,
            DeviceSpan plan,
            int layer,
            Scales scales,
            DeviceSpan queries,
            DeviceSpan scratch,
            DeviceSpan out) {
        BlockShape shape = step.shape();
        requireAligned("plan", plan, Long.BYTES);
        require(plan.bytes() >= step.bytes(), "bytes of the plan", plan.bytes());
        require(queries.bytes() >= step.queryBytes(), "bytes of queries", queries.bytes());
        require(scratch.bytes() >= step.scratchBytes(), "scratch bytes", scratch.bytes());
        require(out.bytes() >= step.queryBytes(), "bytes of the result", out.bytes());
        long units = plan.address().value() + 8L * step.blocks();
        long order = units + 32L * step.units();
        launcher.launch(
                stream,
                attend,
                (long) LANES * step.units(),
                units,
                step.units(),
                plan.address().value(),
                shape.blockTokens(),
                shape.tokenRow(layer, 0, 0, 0).offset(),
                shape.tokenRow(layer, 1, 0, 0).offset(),
                stride(shape, 0, Math.min(1, shape.blockTokens() - 1)),
                stride(shape, Math.min(1, shape.kvHeads() - 1), 0),
                shape.dtype() == Dtype.BF16 ? 0 : 1,
                queries.address().value(),
                order,
                step.queryHeads(),
                step.sharing(),
                shape.headDim(),
                Float.floatToRawIntBits((float) (scales.keys / Math.sqrt(shape.headDim()))),
                scratch.address().value());
        merge(stream, step, order, scales, scratch, out);
    }

    /// @param order the address of the order of sequences, behind which the pieces of each are listed
    private void merge(
            DeviceStream stream, AttentionPlan step, long order, Scales scales, DeviceSpan scratch, DeviceSpan out) {
        long from = order + 4L * step.order().size();
        long pieces = from + 4L * (step.order().size() + 1);
        launcher.launch(
                stream,
                merge,
                step.queryBytes() / 2,
                from,
                pieces,
                order,
                step.order().size(),
                step.queryHeads(),
                step.shape().headDim(),
                Float.floatToRawIntBits(scales.values),
                scratch.address().value(),
                out.address().value());
    }

    /// Bytes from one head's or token's row to the next.
    private static long stride(BlockShape shape, int head, int token) {
        return shape.tokenRow(0, 0, head, token).offset();
    }
}
