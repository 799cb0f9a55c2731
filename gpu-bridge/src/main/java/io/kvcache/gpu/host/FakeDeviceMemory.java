package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/// The memory of a pretended device.
///
/// Addresses are those of no memory at all, with gaps between allocations, and no two drivers of a process have the
/// same. Code that takes one for an address of the CPU crashes here as on a GPU. Owned by the driver's thread.
final class FakeDeviceMemory {

    /// Start of addresses at which current processors have no user memory: bit 60 set.
    private static final long BASE_ADDRESS = 1L << 60;

    private static final long GAP = 1L << 20;
    private static final long ALIGNMENT = 512;

    private static final AtomicLong NEXT_ADDRESS = new AtomicLong(BASE_ADDRESS);

    /// Of all drivers.
    private static final ConcurrentMap<DeviceSpan, FakeAllocation> ALLOCATED = new ConcurrentHashMap<>();

    private final long totalBytes;
    private final AllocationTable slabs = new AllocationTable();
    private final TreeMap<Long, FakeAllocation> memories = new TreeMap<>();

    private record FakeAllocation(Arena arena, MemorySegment memory) {}

    FakeDeviceMemory(long totalBytes) {
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
        long address = NEXT_ADDRESS.getAndAdd((bytes + GAP + GAP - 1) / GAP * GAP);
        DeviceSpan span = new DeviceSpan(new DeviceAddress(address), bytes);
        Arena arena = Arena.ofShared();
        try {
            FakeAllocation allocation = new FakeAllocation(arena, arena.allocate(bytes, ALIGNMENT));
            memories.put(address, allocation);
            ALLOCATED.put(span, allocation);
        } catch (OutOfMemoryError none) {
            arena.close();
            throw new DeviceException(DeviceError.OUT_OF_MEMORY, "allocate", bytes + " bytes of host memory");
        }
        slabs.add(span);
        return span;
    }

    /// Makes known what another driver has allocated.
    void adopt(DeviceSpan span) {
        FakeAllocation allocation = ALLOCATED.get(span);
        if (allocation == null) {
            throw new DeviceException(DeviceError.BAD_REQUEST, "adopt", span + " is no allocation of a device in Java");
        }
        memories.put(span.address().value(), allocation);
        slabs.adopt(span);
    }

    AllocationTable allocations() {
        return slabs;
    }

    void requireSlab(DeviceSpan span) {
        slabs.requireSlab(span);
    }

    void disown(DeviceSpan span) {
        slabs.disown(span);
        memories.remove(span.address().value());
    }

    void free(DeviceSpan span) {
        slabs.remove(span);
        ALLOCATED.remove(span);
        FakeAllocation fakeAllocation = memories.remove(span.address().value());
        if (fakeAllocation != null) { // as every slab has
            fakeAllocation.arena.close();
        }
    }

    /// The memory behind a span.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless one allocation has all of it
    MemorySegment memory(String call, DeviceAddress address, long bytes) {
        slabs.requireSpan(call, address, bytes);
        Map.Entry<Long, FakeAllocation> slab = Objects.requireNonNull(memories.floorEntry(address.value()));
        return slab.getValue().memory.asSlice(address.value() - slab.getKey(), bytes);
    }

    long totalBytes() {
        return totalBytes;
    }

    long usedBytes() {
        return slabs.bytes();
    }

    long freeBytes() {
        return totalBytes - slabs.bytes();
    }

    int allocationCount() {
        return slabs.count();
    }

    void close() {
        slabs.allocations().forEach(this::free);
    }
}
