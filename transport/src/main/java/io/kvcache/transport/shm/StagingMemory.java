package io.kvcache.transport.shm;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.transport.shm.ServerMemoryFolder.SharedMapping;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Shared memory for puts: this process writes blocks into it, and a server on its host reads them.
///
/// **Ownership.** The caller that opens it releases it. It stays mapped until then, and until the last span is
/// freed. So no caller touches unmapped memory. A server that dies cannot unmap it.
///
/// **Threads.** Any.
public final class StagingMemory {

    private final SharedMapping mapping;
    private final MemorySegment memory;
    private final FirstFitAllocator free;

    private StagingMemory(SharedMapping mapping, MemorySegment memory) {
        this.mapping = mapping;
        this.memory = memory;
        free = new FirstFitAllocator(memory.byteSize());
    }

    /// Maps the staging memory, writable.
    ///
    /// @param files of the store, which this process has mapped
    /// @throws IOException when the file does not exist, is not this user's, or is not the one that the server
    ///     described
    public static StagingMemory open(SharedMemoryFiles files, StagingDescriptor place) throws IOException {
        SharedMapping mapping = new SharedMapping();
        try {
            long most = Pages.MAX_BYTES;
            if (place.bytes() < 1 || place.bytes() > most) {
                throw new IOException("staging memory of %s bytes; allowed: 1 to %s".formatted(place.bytes(), most));
            }
            MemorySegment whole = new ServerMemoryFolder(files).mapStaging(place, mapping.arena());
            return new StagingMemory(mapping, whole.asSlice(StagingHeader.BYTES));
        } catch (IOException | RuntimeException failed) {
            mapping.release();
            throw failed;
        }
    }

    /// The part of the memory that one put uses.
    public final class Allocation {

        private final long offset;
        private final long size;
        private boolean used = true;

        private Allocation(long offset, long size) {
            this.offset = offset;
            this.size = size;
        }

        /// Returns the offset of its first byte, as the server counts.
        public long offset() {
            return offset;
        }

        /// Returns its first bytes. Their contents are undefined.
        public MemorySegment segment(long bytes) {
            return memory.asSlice(offset, Math.min(bytes, size));
        }

        /// Releases the memory. If the server copies from it later, the bytes may have changed, and then their
        /// checksum differs from the one that the client sent.
        public void free() {
            StagingMemory.this.free(this);
        }
    }

    /// Returns memory of that size in one piece. Returns null when no free part is large enough, or the mapping is
    /// closed.
    public @Nullable Allocation allocate(long bytes) {
        long size = Pages.roundUp(bytes);
        if (bytes > memory.byteSize() || !mapping.retain()) {
            return null;
        }
        long offset = allocateOffset(size);
        if (offset == FirstFitAllocator.NONE) {
            mapping.release();
            return null;
        }
        return new Allocation(offset, size);
    }

    private synchronized long allocateOffset(long size) {
        return free.allocate(size);
    }

    private void free(Allocation allocation) {
        synchronized (this) {
            if (!allocation.used) {
                throw new IllegalStateException("a span of staging memory is given back twice");
            }
            allocation.used = false;
            free.free(allocation.offset, allocation.size);
        }
        mapping.release();
    }

    /// Returns whether all of the memory is free.
    synchronized boolean isUnused() {
        return free.isUnused(memory.byteSize());
    }

    /// Releases the mapping.
    public void release() {
        mapping.release();
    }

    /// The free parts of a span of memory: a caller gets the first that is large enough, so that the same few pages
    /// are used again and again.
    ///
    /// Not safe for several threads.
    static final class FirstFitAllocator {

        /// No free part is large enough.
        static final long NONE = -1;

        /// Sizes by offset; no two of them touch.
        private final TreeMap<Long, Long> freeSizes = new TreeMap<>();

        FirstFitAllocator(long bytes) {
            freeSizes.put(0L, bytes);
        }

        /// Allocates a part. Returns its offset, or [#NONE].
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

        /// Frees an allocated part.
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

        /// Returns whether this many bytes are free.
        boolean isUnused(long bytes) {
            return freeSizes.size() == 1 && Objects.equals(freeSizes.get(0L), bytes);
        }
    }
}
