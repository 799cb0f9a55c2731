package io.kvcache.transport.shm;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/// Which parts of a span of memory nobody has: whoever wants some gets the first that is large enough, so
/// that the same few pages are used again and again.
///
/// Not safe for several threads.
final class FreeSpans {

    /// There is no such part.
    static final long NONE = -1;

    /// Sizes by offset; no two of them touch.
    private final TreeMap<Long, Long> free = new TreeMap<>();

    FreeSpans(long bytes) {
        free.put(0L, bytes);
    }

    /// Takes a part; answers its offset, or [#NONE].
    long take(long bytes) {
        long offset = first(bytes);
        if (offset != NONE) {
            long size = Objects.requireNonNull(free.remove(offset));
            if (size > bytes) {
                free.put(offset + bytes, size - bytes);
            }
        }
        return offset;
    }

    private long first(long bytes) {
        for (Map.Entry<Long, Long> each : free.entrySet()) {
            if (each.getValue() >= bytes) {
                return each.getKey();
            }
        }
        return NONE;
    }

    /// Gives a part back that was taken.
    void give(long offset, long bytes) {
        long begin = offset;
        long size = bytes;
        Map.Entry<Long, Long> before = free.floorEntry(offset);
        if (before != null && before.getKey() + before.getValue() == offset) {
            begin = before.getKey();
            size += before.getValue();
        }
        Long after = free.remove(offset + bytes);
        free.put(begin, size + Objects.requireNonNullElse(after, 0L));
    }

    /// Whether nobody has any of so many bytes.
    boolean whole(long bytes) {
        return free.size() == 1 && Objects.equals(free.get(0L), bytes);
    }
}
