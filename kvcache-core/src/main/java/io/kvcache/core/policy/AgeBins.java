package io.kvcache.core.policy;

/// Ages in half octaves: two bins for each doubling, so that a bin is about 40 % wide whatever the age.
final class AgeBins {

    /// Ages up to 2^42 are told apart; older ones share the last bin.
    static final int COUNT = 84;

    private AgeBins() {}

    /// The bin of an age, from 0 to [#COUNT], exclusive.
    static int binOf(long age) {
        if (age < 2) {
            return 0;
        }
        int octave = Long.SIZE - 1 - Long.numberOfLeadingZeros(age);
        int upperHalf = (int) (age >>> (octave - 1)) & 1;
        return Math.min(COUNT - 1, 2 * octave + upperHalf);
    }

    /// The first age of a bin. Bin 1 is empty.
    static long start(int bin) {
        if (bin < 2) {
            return 2L * bin;
        }
        long octave = 1L << (bin / 2);
        return bin % 2 == 0 ? octave : octave + octave / 2;
    }

    /// How many ages a bin has.
    static long width(int bin) {
        return Math.max(0, start(bin + 1) - start(bin));
    }
}
