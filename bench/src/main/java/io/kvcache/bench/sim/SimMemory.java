package io.kvcache.bench.sim;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Native memory that is used again by the next store, and knows how much of it is out.
///
/// Only what has to be zeroes is zeroed: slots begin with whatever the last store left there, which
/// nobody may see.
///
/// **Ownership.** Closing it ends all of it.
public final class SimMemory implements HostMemorySource, AutoCloseable {

    private static final int ALIGNMENT = 4096;
    private static final String SLOTS = "slots";

    /// Memory that stands for a disk.
    static final String DISK = "disk";

    private final Arena arena = Arena.ofShared();
    private final Map<Long, Deque<MemorySegment>> free = new HashMap<>();
    private final List<ReservedSpan> reserved = new ArrayList<>();

    @Override
    public HostMemory reserve(String purpose, long bytes) {
        MemorySegment segment =
                free.computeIfAbsent(bytes, _ -> new ArrayDeque<>()).poll();
        if (segment == null) {
            segment = arena.allocate(bytes, ALIGNMENT);
        } else if (!purpose.equals(SLOTS)) {
            segment.fill((byte) 0);
        }
        ReservedSpan span = new ReservedSpan(purpose, segment);
        reserved.add(span);
        return span;
    }

    /// Bytes that are reserved and were not given back.
    long reservedBytes() {
        return reserved.stream().mapToLong(span -> span.segment.byteSize()).sum();
    }

    /// Whoever had memory is no more; disks keep theirs.
    void releaseAllButDisks() {
        releaseSpan(false);
    }

    /// The run is over.
    void releaseAll() {
        releaseSpan(true);
    }

    private void releaseSpan(boolean disks) {
        List.copyOf(reserved).stream()
                .filter(span -> disks || !span.purpose.equals(DISK))
                .forEach(ReservedSpan::close);
    }

    @Override
    public void close() {
        arena.close();
    }

    private final class ReservedSpan implements HostMemory {
        private final String purpose;
        private final MemorySegment segment;

        ReservedSpan(String purpose, MemorySegment segment) {
            this.purpose = purpose;
            this.segment = segment;
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public String describe() {
            return "simulated";
        }

        @Override
        public void close() {
            if (!reserved.remove(this)) {
                throw new IllegalStateException("memory is given back twice");
            }
            free.computeIfAbsent(segment.byteSize(), _ -> new ArrayDeque<>()).push(segment);
        }
    }
}
