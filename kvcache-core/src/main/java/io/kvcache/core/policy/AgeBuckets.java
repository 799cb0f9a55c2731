package io.kvcache.core.policy;

import java.util.Arrays;

/// Cuts the past into spans that are as long as they are far away.
///
/// The newest span is open. Two neighbours become one when together they are no longer than an eighth
/// of the time since they ended. So there are few spans, about eight a doubling of age, and what lies
/// in one is of about one age.
final class AgeBuckets {

    /// A merged span's length is at most the time since its end divided by this.
    private static final int DISTANCE = 8;

    private long[] starts = new long[64];
    private int count = 1;

    /// @param start of the first span
    AgeBuckets(long start) {
        starts[0] = start;
    }

    int count() {
        return count;
    }

    /// The span of a reading; what is older than all of them belongs to the first.
    int bucketOf(long reading) {
        int last = count - 1;
        if (reading >= starts[last]) {
            return last;
        }
        int low = 0;
        int high = last - 1;
        while (low < high) {
            int middle = (low + high + 1) >>> 1;
            if (starts[middle] <= reading) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    /// Time since the middle of a span.
    long age(int bucket, long now) {
        long end = bucket == count - 1 ? now : starts[bucket + 1];
        return now - (starts[bucket] + end) / 2;
    }

    /// Ends the newest span.
    void startBucket(long now) {
        if (count == starts.length) {
            starts = Arrays.copyOf(starts, 2 * count);
        }
        starts[count++] = now;
    }

    /// The first span, from one on, that is to be merged with the one after it, or -1.
    int findMergeable(int from, long now) {
        for (int bucket = from; bucket + 2 < count; bucket++) {
            long end = starts[bucket + 2];
            if ((end - starts[bucket]) * DISTANCE <= now - end) {
                return bucket;
            }
        }
        return -1;
    }

    /// Makes one of a span and the one after it.
    void merge(int bucket) {
        System.arraycopy(starts, bucket + 2, starts, bucket + 1, count - bucket - 2);
        count--;
    }

    long bytes() {
        return (long) starts.length * Long.BYTES;
    }
}
