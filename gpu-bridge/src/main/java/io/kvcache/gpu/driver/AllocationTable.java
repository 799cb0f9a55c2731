package io.kvcache.gpu.driver;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/// Memory that a driver has allocated or imported. A copy that does not lie within one allocation is rejected at
/// once, as devices notice only some of those.
///
/// **Threads.** The driver's.
public final class AllocationTable {

    private final TreeMap<Long, DeviceSpan> byAddress = new TreeMap<>();
    private final Set<Long> adopted = new HashSet<>();
    private final Set<Long> joined = new HashSet<>();
    private long bytes;

    /// Notes an allocation.
    public void add(DeviceSpan slab) {
        byAddress.put(slab.address().value(), slab);
        bytes += slab.bytes();
    }

    /// Notes memory that others allocated.
    public void adopt(DeviceSpan span) {
        byAddress.put(span.address().value(), span);
        adopted.add(span.address().value());
    }

    /// Notes memory that was mapped: with what is mapped right before and behind it, it is one.
    public void addMapped(DeviceSpan span) {
        adopt(span);
        joined.add(span.address().value());
    }

    /// Forgets memory that others allocated.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] when there is none like it
    public void disown(DeviceSpan span) {
        long address = span.address().value();
        if (!adopted.contains(address) || !span.equals(byAddress.get(address))) {
            throw badRequest("disown", span.address(), span.bytes());
        }
        adopted.remove(address);
        joined.remove(address);
        byAddress.remove(address);
    }

    /// Forgets an allocation.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] when there is none like it
    public void remove(DeviceSpan slab) {
        requireSlab(slab);
        byAddress.remove(slab.address().value());
        bytes -= slab.bytes();
    }

    /// Checks that a span is one whole slab.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless it is one whole allocation
    public void requireSlab(DeviceSpan slab) {
        long address = slab.address().value();
        if (adopted.contains(address) || !slab.equals(byAddress.get(address))) {
            throw badRequest("free", slab.address(), slab.bytes());
        }
    }

    /// Refuses a span that is not all within one allocation.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless one allocation has all of it
    public void requireSpan(String call, DeviceAddress address, long length) {
        Map.Entry<Long, DeviceSpan> slab = byAddress.floorEntry(address.value());
        long end = address.value() + length;
        long covered = slab == null ? 0 : slab.getKey() + slab.getValue().bytes();
        if (slab == null || length < 1 || covered <= address.value()) {
            throw badRequest(call, address, length);
        }
        boolean joins = joined.contains(slab.getKey());
        while (covered - end < 0) {
            DeviceSpan next = byAddress.get(covered);
            if (!joins || next == null || !joined.contains(covered)) {
                throw badRequest(call, address, length);
            }
            covered += next.bytes();
        }
    }

    /// Returns whether an allocation begins here, so that a copy from below must end. Mapped memory continues the
    /// mapping before it.
    boolean isAllocationStart(long address) {
        if (!byAddress.containsKey(address)) {
            return false;
        }
        Long before = byAddress.lowerKey(address);
        return before == null || !joined.contains(address) || !joined.contains(before);
    }

    private static DeviceException badRequest(String call, DeviceAddress address, long length) {
        return new DeviceException(
                DeviceError.BAD_REQUEST, call, length + " bytes at " + address + " are not of one allocation");
    }

    /// All allocations.
    public List<DeviceSpan> allocations() {
        return byAddress.values().stream()
                .filter(slab -> !adopted.contains(slab.address().value()))
                .toList();
    }

    /// How many allocations.
    public int count() {
        return byAddress.size() - adopted.size();
    }

    /// Bytes of all allocations.
    public long bytes() {
        return bytes;
    }
}
