package io.kvcache.gpu.kernel;

/// Small floating-point formats by their definitions, in float64.
final class SmallFloatFormats {

    /// Bits of the fraction that bf16 keeps.
    private static final int BF16_FRACTION = 7;

    private static final int E4M3_FRACTION = 3;
    private static final int E4M3_MIN_EXPONENT = -6;

    private SmallFloatFormats() {}

    static double ofBf16(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /// A value's bits, cut off.
    static short toBf16(double value) {
        return (short) (Float.floatToIntBits((float) value) >>> 16);
    }

    /// The step between a magnitude's neighbours in bf16.
    static double bf16Step(double value) {
        return Math.scalb(1.0, Math.max(Math.getExponent(value), Float.MIN_EXPONENT) - BF16_FRACTION);
    }

    /// What a code of e4m3 stands for; NaN for its two NaNs.
    static double ofE4m3(byte code) {
        int exponent = code >> 3 & 15;
        int fraction = code & 7;
        double magnitude = exponent == 15 && fraction == 7
                ? Double.NaN
                : exponent == 0
                        ? Math.scalb(fraction / 8.0, E4M3_MIN_EXPONENT)
                        : Math.scalb(1 + fraction / 8.0, exponent - 7);
        return code < 0 ? -magnitude : magnitude;
    }

    /// The step between a magnitude's neighbours in e4m3.
    static double e4m3Step(double value) {
        return Math.scalb(1.0, Math.max(Math.getExponent(value), E4M3_MIN_EXPONENT) - E4M3_FRACTION);
    }
}
