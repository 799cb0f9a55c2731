package io.kvcache.bench.trace;

import java.util.Random;

/// Draws one of several things of which the k-th is wanted in proportion to k to minus some power:
/// Zipf's law.
final class ZipfSampler {

    /// Of each thing and those before it.
    private final double[] sums;

    /// @param things at least 1
    /// @param exponent 0 for all alike
    ZipfSampler(int things, double exponent) {
        sums = new double[things];
        double sum = 0;
        for (int i = 0; i < things; i++) {
            sum += Math.pow(i + 1, -exponent);
            sums[i] = sum;
        }
    }

    /// The number of a thing, from 0, by one double of the random numbers.
    int draw(Random random) {
        double drawn = random.nextDouble() * sums[sums.length - 1];
        int thing = 0;
        while (sums[thing] < drawn) {
            thing++;
        }
        return thing;
    }
}
