package io.kvcache.gpu.driver;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/// The host memory that is registered with a device.
///
/// **Threads.** The driver's.
public final class PinnedHostRanges {

    /// Stands for a device, which is not a thread of ours: memory that it may not use is refused. Never started.
    private static final Thread OTHER_THREAD = new Thread(() -> {}, "kvcache-any");

    private final TreeMap<Long, Long> endByStart = new TreeMap<>();

    /// Adds a registration. Whether two of them may have a page in common is the driver's to say:
    /// newer ones are reported to take it.
    ///
    /// @throws DeviceException with [DeviceError#ALREADY_REGISTERED] when it overlaps another
    public void add(MemorySegment host) {
        long start = host.address();
        long end = start + host.byteSize();
        Map.Entry<Long, Long> before = endByStart.lowerEntry(end);
        if (before != null && before.getValue() > start) {
            throw new DeviceException(DeviceError.ALREADY_REGISTERED, "register", describe(host));
        }
        endByStart.put(start, end);
    }

    /// Removes a registration.
    ///
    /// @throws DeviceException with [DeviceError#NOT_REGISTERED] when there is none of exactly this
    ///     memory
    public void remove(MemorySegment host) {
        if (!endByStart.remove(host.address(), host.address() + host.byteSize())) {
            throw new DeviceException(DeviceError.NOT_REGISTERED, "unregister", describe(host));
        }
    }

    /// How many registrations there are.
    public int count() {
        return endByStart.size();
    }

    /// Returns the start of each registration.
    public List<Long> startAddresses() {
        return List.copyOf(endByStart.keySet());
    }

    /// Returns whether all of this memory is registered, by one registration or by several beside each other.
    public boolean covers(MemorySegment host) {
        long at = host.address();
        long end = at + host.byteSize();
        Map.Entry<Long, Long> around = endByStart.floorEntry(at);
        while (around != null && around.getValue() > at) {
            at = around.getValue();
            if (at >= end) {
                return true;
            }
            around = endByStart.floorEntry(at);
        }
        return false;
    }

    /// Returns whether a copy of this memory in one piece would cross the border of a registration.
    public boolean crossesBoundary(long address, long bytes) {
        return nextBoundary(address) < address + bytes;
    }

    /// The first address above this one where a registration begins or ends.
    long nextBoundary(long address) {
        Map.Entry<Long, Long> around = endByStart.floorEntry(address);
        if (around != null && around.getValue() > address) {
            return around.getValue();
        }
        Long next = endByStart.higherKey(address);
        return next == null ? Long.MAX_VALUE : next;
    }

    /// Refuses what a device cannot copy from.
    ///
    /// @throws IllegalArgumentException for memory on the heap, of one thread, or of no bytes
    public static void requireSource(MemorySegment host) {
        if (!host.isNative()) {
            throw new IllegalArgumentException("memory on the heap is moved by the collector while a device copies; "
                    + "give it native memory instead of " + describe(host));
        }
        if (!host.isAccessibleBy(OTHER_THREAD)) {
            throw new IllegalArgumentException("memory of one thread cannot be copied by another; "
                    + "take a shared arena instead of the one of " + describe(host));
        }
        if (host.byteSize() == 0) {
            throw new IllegalArgumentException("nothing to copy in " + describe(host) + "; it takes 1 byte and up");
        }
    }

    /// Refuses what a device cannot copy to.
    ///
    /// @throws IllegalArgumentException as [#requireSource] does, and for memory that is read-only
    public static void requireTarget(MemorySegment host) {
        requireSource(host);
        if (host.isReadOnly()) {
            throw new IllegalArgumentException("read-only memory cannot be copied to: " + describe(host));
        }
    }

    private static String describe(MemorySegment host) {
        return String.format(Locale.ROOT, "%s bytes at 0x%x", host.byteSize(), host.address());
    }
}
