package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/// The blocks of a section of a chain that are in a device's memory, whichever these are: there may be gaps between
/// them, unlike in a [DeviceBlockTable]. They stay where they are while this is open.
///
/// **Ownership.** The caller closes it, once, when the device has done with what reads the blocks.
///
/// **Threads.** One.
public final class DeviceBlockMap implements AutoCloseable {

    private final SortedMap<Integer, DeviceEntry> entries;
    private final Set<DeviceSpan> memory;

    DeviceBlockMap(SortedMap<Integer, DeviceEntry> entries, Set<DeviceSpan> memory) {
        this.entries = entries;
        this.memory = memory;
    }

    /// Returns the map of a store without a tier on the device.
    public static DeviceBlockMap empty() {
        return new DeviceBlockMap(new TreeMap<>(), Set.of());
    }

    /// Returns whether no block is on the device.
    public boolean isEmpty() {
        return entries.isEmpty();
    }

    /// Returns whether block `index` of the chain is on the device.
    public boolean contains(int index) {
        return entries.containsKey(index);
    }

    /// Returns the memory of block `index` of the chain: its bytes as they were put, one after the other.
    ///
    /// @throws IndexOutOfBoundsException unless [#contains]
    public DeviceSpan span(int index) {
        DeviceEntry entry = entries.get(index);
        if (entry == null) {
            throw new IndexOutOfBoundsException("block " + index + " is not on the device, or was given free");
        }
        return entry.span();
    }

    /// The allocations in which the blocks lie, for a driver that has to adopt them.
    public Set<DeviceSpan> memory() {
        return memory;
    }

    /// Gives the blocks free. A second close does nothing.
    @Override
    public void close() {
        entries.values().forEach(entry -> entry.region().unpin());
        entries.clear();
    }
}
