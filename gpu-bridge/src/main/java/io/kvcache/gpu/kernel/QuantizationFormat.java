package io.kvcache.gpu.kernel;

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

    /// Bits of a code.
    int bits() {
        return bits;
    }

    /// Bytes of the codes of so many values.
    long codeBytes(long values) {
        return values * bits / Byte.SIZE;
    }

    /// Bytes of the scales of so many groups.
    long scaleBytes(long groups) {
        return groups * numbers * Float.BYTES;
    }
}
