package io.kvcache.gpu.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// By how much each pair of a key turns when its token stands so many positions later: pair `i` of
/// `pairs` by `delta · base^(-i / pairs)`.
public final class RopeShift {

    private RopeShift() {}

    /// Computes them in float64, for [GpuKernels#ropeShift].
    ///
    /// @param delta positions; negative for earlier
    /// @param base of the model's frequencies, such as 10,000 or 500,000
    /// @param into `[pairs][cos, sin]` in float32, as many pairs as fit
    public static void compute(int delta, double base, MemorySegment into) {
        long pairs = into.byteSize() / 8;
        for (long pair = 0; pair < pairs; pair++) {
            double angle = delta * Math.pow(base, -(double) pair / pairs);
            into.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 2 * pair, (float) Math.cos(angle));
            into.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 2 * pair + 1, (float) Math.sin(angle));
        }
    }
}
