package io.kvcache.tiers.device;

import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The requests of a device, of which some are on their way.
final class IoRequestPool {

    private final IoRequest[] all;
    private final int[] free;
    private int freeCount;

    /// @param depth how many
    IoRequestPool(int depth) {
        requireDepth(depth);
        all = IntStream.range(0, depth).mapToObj(IoRequest::new).toArray(IoRequest[]::new);
        free = IntStream.range(0, depth).toArray();
        freeCount = depth;
    }

    static void requireDepth(int depth) {
        if (depth < 1 || depth > BlockDevice.MAX_DEPTH) {
            throw new IllegalArgumentException(
                    "depth must be from 1 to %d, is %d".formatted(BlockDevice.MAX_DEPTH, depth));
        }
    }

    int depth() {
        return all.length;
    }

    int inFlight() {
        return all.length - freeCount;
    }

    /// A request to fill in, or null when all are on their way.
    @Nullable
    IoRequest acquire() {
        return freeCount == 0 ? null : all[free[--freeCount]];
    }

    void release(IoRequest request) {
        assert freeCount < all.length : "a request came back twice";
        request.clear();
        free[freeCount++] = request.number;
    }

    IoRequest get(int number) {
        return all[number];
    }
}
