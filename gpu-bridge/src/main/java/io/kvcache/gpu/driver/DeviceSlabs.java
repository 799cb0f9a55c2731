package io.kvcache.gpu.driver;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// What a driver has allocated, so that a copy which is not all within one allocation is refused at once:
/// devices themselves notice only some of them.
///
/// **Threads.** The driver's.
public final class DeviceSlabs {

    private final TreeMap<Long, DeviceSpan> byAddress = new TreeMap<>();
    private long bytes;

    /// Notes an allocation.
    public void add(DeviceSpan slab) {
        byAddress.put(slab.address().value(), slab);
        bytes += slab.bytes();
    }

    /// Forgets an allocation.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] when there is none like it
    public void remove(DeviceSpan slab) {
        requireSlab(slab);
        byAddress.remove(slab.address().value());
        bytes -= slab.bytes();
    }

    /// Refuses what is no allocation.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless it is one whole allocation
    public void requireSlab(DeviceSpan slab) {
        if (!slab.equals(byAddress.get(slab.address().value()))) {
            throw bad("free", slab.address(), slab.bytes());
        }
    }

    /// Refuses a span that is not all within one allocation.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] unless one allocation has all of it
    public void requireSpan(String call, DeviceAddress address, long length) {
        Map.Entry<Long, DeviceSpan> slab = byAddress.floorEntry(address.value());
        long offset = slab == null ? 0 : address.value() - slab.getKey();
        if (slab == null || length < 1 || offset > slab.getValue().bytes() - length) {
            throw bad(call, address, length);
        }
    }

    private static DeviceException bad(String call, DeviceAddress address, long length) {
        return new DeviceException(
                DeviceError.BAD_REQUEST, call, length + " bytes at " + address + " are not of one allocation");
    }

    /// All allocations.
    public List<DeviceSpan> all() {
        return List.copyOf(byAddress.values());
    }

    /// How many allocations.
    public int count() {
        return byAddress.size();
    }

    /// Bytes of all allocations.
    public long bytes() {
        return bytes;
    }
}
