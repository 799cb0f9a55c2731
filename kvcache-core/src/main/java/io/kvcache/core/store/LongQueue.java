package io.kvcache.core.store;

import java.util.Arrays;

/// A queue of numbers without an object each.
final class LongQueue {

    private long[] ring = new long[1024];
    private int head;
    private int size;

    boolean isEmpty() {
        return size == 0;
    }

    int size() {
        return size;
    }

    void add(long value) {
        if (size == ring.length) {
            long[] larger = Arrays.copyOfRange(ring, head, head + 2 * size);
            System.arraycopy(ring, 0, larger, size - head, head);
            ring = larger;
            head = 0;
        }
        ring[(head + size++) & (ring.length - 1)] = value;
    }

    /// The oldest; of a ring that is not empty.
    long peek() {
        return ring[head];
    }

    /// Drops the oldest.
    void removeFirst() {
        head = (head + 1) & (ring.length - 1);
        size--;
    }
}
