package io.kvcache.gpu.driver;

import java.util.Arrays;

/// Copies as a driver is asked for them: from, to and length of each.
public final class CopyRanges {

    private final CopyDirection direction;
    private long[] from = new long[16];
    private long[] to = new long[16];
    private long[] bytes = new long[16];
    private int count;

    CopyRanges(CopyDirection direction) {
        this.direction = direction;
    }

    void add(long source, long target, long length) {
        if (count == from.length) {
            from = Arrays.copyOf(from, 2 * count);
            to = Arrays.copyOf(to, 2 * count);
            bytes = Arrays.copyOf(bytes, 2 * count);
        }
        from[count] = source;
        to[count] = target;
        bytes[count++] = length;
    }

    /// Where the bytes go.
    public CopyDirection direction() {
        return direction;
    }

    /// How many copies.
    public int count() {
        return count;
    }

    /// Address of the first byte that is read.
    public long from(int index) {
        return from[index];
    }

    /// Address of the first byte that is written.
    public long to(int index) {
        return to[index];
    }

    /// Bytes of one copy.
    public long bytes(int index) {
        return bytes[index];
    }
}
