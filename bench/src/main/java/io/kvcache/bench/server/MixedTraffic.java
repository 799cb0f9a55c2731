package io.kvcache.bench.server;

import java.io.IOException;
import java.util.Random;

/// SETs and GETs of values of 1 KiB to 32 MiB, each size as likely as its double.
///
/// @param setBytes of values that were set
/// @param gets how many
/// @param found of them
record MixedTraffic(long setBytes, long gets, long found) {

    static final MixedTraffic NONE = new MixedTraffic(0, 0, 0);

    private static final int MIN_LOG2 = 10;
    private static final int MAX_LOG2 = 25;

    /// Of the mean of such sizes, 2.1 MiB, three times as many as fit.
    private static int keys(long hostBytes) {
        return (int) (3 * hostBytes / (2200L << 10));
    }

    /// Half of them SETs, on one connection, until a time of [System#nanoTime].
    static MixedTraffic runUntil(long end, int port, long seed, long hostBytes) throws IOException {
        Random random = new Random(seed);
        int keys = keys(hostBytes);
        MixedTraffic sum = NONE;
        try (ValueClient client = new ValueClient(port, 1 << MAX_LOG2, true)) {
            while (System.nanoTime() - end < 0) {
                int key = random.nextInt(keys);
                if (random.nextBoolean()) {
                    int bytes = size(random);
                    client.setValue(key, bytes);
                    sum = sum.plus(new MixedTraffic(bytes, 0, 0));
                } else {
                    sum = sum.plus(new MixedTraffic(0, 1, client.getValue(key) ? 1 : 0));
                }
            }
        }
        return sum;
    }

    private static int size(Random random) {
        double exponent = MIN_LOG2 + (MAX_LOG2 - MIN_LOG2) * random.nextDouble();
        return (int) Math.pow(2, exponent);
    }

    MixedTraffic plus(MixedTraffic other) {
        return new MixedTraffic(setBytes + other.setBytes, gets + other.gets, found + other.found);
    }
}
