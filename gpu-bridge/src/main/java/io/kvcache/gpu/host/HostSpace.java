package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;

/// The memory of a pretended device.
///
/// Addresses are those of no memory at all: between two allocations there is a gap, and whoever takes one
/// for an address of the CPU's crashes here as on a GPU. Owned by the driver's thread.
final class HostSpace {

    /// Where a processor of today has no user memory: bit 60 set.
    private static final long FIRST = 1L << 60;

    private static final long GAP = 1L << 20;
    private static final long ALIGNMENT = 512;

    private final long totalBytes;
    private final TreeMap<Long, Slab> slabs = new TreeMap<>();
    private long usedBytes;
    private long next = FIRST;

    private record Slab(Arena arena, MemorySegment memory) {}

    HostSpace(long totalBytes) {
        this.totalBytes = totalBytes;
    }

    DeviceSpan allocate(long bytes) {
        if (bytes < 1) {
            throw new IllegalArgumentException("allocating " + bytes + " bytes; it takes 1 and up");
        }
        if (bytes > freeBytes()) {
            throw new DeviceException(
                    DeviceError.OUT_OF_MEMORY, "allocate", bytes + " bytes of " + freeBytes() + " free");
        }
        Arena arena = Arena.ofShared();
        try {
            slabs.put(next, new Slab(arena, arena.allocate(bytes, ALIGNMENT)));
        } catch (OutOfMemoryError none) {
            arena.close();
            throw new DeviceException(DeviceError.OUT_OF_MEMORY, "allocate", bytes + " bytes of host memory");
        }
        DeviceSpan span = new DeviceSpan(new DeviceAddress(next), bytes);
        usedBytes += bytes;
        next += (bytes + GAP + GAP - 1) / GAP * GAP;
        return span;
    }

    void free(DeviceSpan span) {
        Slab slab = slabs.get(span.address().value());
        if (slab == null || slab.memory.byteSize() != span.bytes()) {
            throw bad("free", span.address(), span.bytes());
        }
        slab.arena.close();
        slabs.remove(span.address().value());
        usedBytes -= span.bytes();
    }

    /// The memory behind a span.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless one allocation has all of it
    MemorySegment memory(String call, DeviceAddress address, long bytes) {
        Map.Entry<Long, Slab> slab = slabs.floorEntry(address.value());
        if (slab != null) {
            long offset = address.value() - slab.getKey();
            MemorySegment memory = slab.getValue().memory;
            if (bytes > 0 && offset <= memory.byteSize() - bytes) {
                return memory.asSlice(offset, bytes);
            }
        }
        throw bad(call, address, bytes);
    }

    private static DeviceException bad(String call, DeviceAddress address, long bytes) {
        return new DeviceException(
                DeviceError.BAD_REQUEST, call, bytes + " bytes at " + address + " are not of one allocation");
    }

    long totalBytes() {
        return totalBytes;
    }

    long usedBytes() {
        return usedBytes;
    }

    long freeBytes() {
        return totalBytes - usedBytes;
    }

    int slabs() {
        return slabs.size();
    }

    void close() {
        slabs.values().forEach(slab -> slab.arena.close());
        slabs.clear();
        usedBytes = 0;
    }
}
