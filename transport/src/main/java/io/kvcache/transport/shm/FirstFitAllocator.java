package io.kvcache.transport.shm;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/// Which parts of a span of memory nobody has: whoever wants some gets the first that is large enough, so
/// that the same few pages are used again and again.
///
/// Not safe for several threads.
final class FirstFitAllocator {

    /// There is no such part.
    static final long NONE = -1;

    /// Sizes by offset; no two of them touch.
    private final TreeMap<Long, Long> freeSizes = new TreeMap<>();

    FirstFitAllocator(long bytes) {
        freeSizes.put(0L, bytes);
    }

    /// Takes a part; answers its offset, or [#NONE].
    long allocate(long bytes) {
        long offset = firstFit(bytes);
        if (offset != NONE) {
            long size = Objects.requireNonNull(freeSizes.remove(offset));
            if (size > bytes) {
                freeSizes.put(offset + bytes, size - bytes);
            }
        }
        return offset;
    }

    private long firstFit(long bytes) {
        for (Map.Entry<Long, Long> each : freeSizes.entrySet()) {
            if (each.getValue() >= bytes) {
                return each.getKey();
            }
        }
        return NONE;
    }

    /// Gives a part back that was taken.
    void free(long offset, long bytes) {
        long begin = offset;
        long size = bytes;
        Map.Entry<Long, Long> before = freeSizes.floorEntry(offset);
        if (before != null && before.getKey() + before.getValue() == offset) {
            begin = before.getKey();
            size += before.getValue();
        }
        Long after = freeSizes.remove(offset + bytes);
        freeSizes.put(begin, size + Objects.requireNonNullElse(after, 0L));
    }

    /// Whether nobody has any of so many bytes.
    boolean isUnused(long bytes) {
        return freeSizes.size() == 1 && Objects.equals(freeSizes.get(0L), bytes);
    }
}
