package io.kvcache.gpu.engine;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/// Device memory and events that an engine shares with this process. They are opened with a driver of their own,
/// so a copy for this engine can reach no other memory.
///
/// **Ownership.** All of it is closed together, when nothing is on its way any more.
///
/// **Threads.** The session's.
final class EngineMappings {

    private static final int MAX_REGIONS = 1024;
    private static final int MAX_EVENTS = 64;

    private final DeviceDriver driver;
    private final List<MappedRegion> regions = new ArrayList<>();
    private final List<DeviceEvent> events = new ArrayList<>();
    private final Set<String> tokens = new HashSet<>();

    private record MappedRegion(DeviceSpan span, Runnable giveBack) {}

    EngineMappings(DeviceDriver driver) {
        this.driver = driver;
    }

    /// Opens memory that was allocated whole; a process opens a token once.
    ///
    /// @return its number
    int open(byte[] token) {
        requireCapacity();
        String told = HexFormat.of().formatHex(token);
        if (tokens.contains(told)) {
            throw new IllegalArgumentException("this token was told before; say places in its memory by offsets");
        }
        DeviceSpan span = driver.ipc().open(token);
        tokens.add(told);
        return add(new MappedRegion(span, () -> driver.ipc().close(span)));
    }

    /// Opens memory by a descriptor, and maps it.
    ///
    /// @param descriptor the caller's, to be closed afterwards
    /// @return its number
    int open(int descriptor, long bytes) {
        requireCapacity();
        VirtualMemory virtual = driver.virtualMemory();
        ResourceScope taken = new ResourceScope();
        try {
            PhysicalPages pages = taken.register(virtual.open(descriptor, bytes), virtual::release);
            DeviceSpan range = taken.register(virtual.reserve(bytes), virtual::unreserve);
            virtual.map(range.address(), pages);
            return add(new MappedRegion(range, () -> {
                virtual.unmap(range.address(), pages); // what is mapped still, stays reserved
                taken.releaseAll();
            }));
        } catch (DeviceException refused) {
            throw taken.releaseAfter(refused);
        }
    }

    private int add(MappedRegion region) {
        regions.add(region);
        return regions.size() - 1;
    }

    private void requireCapacity() {
        EngineCodec.require(regions.size() < MAX_REGIONS, "regions of an engine", regions.size() + 1L);
    }

    /// Opens an event.
    ///
    /// @return its number
    int openEvent(byte[] token) {
        EngineCodec.require(events.size() < MAX_EVENTS, "events of an engine", events.size() + 1L);
        events.add(driver.ipc().openEvent(token));
        return events.size() - 1;
    }

    /// A part of a region.
    ///
    /// @throws IllegalArgumentException when there is no such region, or it ends before that
    DeviceSpan span(int region, long offset, long bytes) {
        EngineCodec.require(region >= 0 && region < regions.size(), "region", region);
        DeviceSpan whole = regions.get(region).span;
        if (offset < 0 || bytes < 1 || offset > whole.bytes() || bytes > whole.bytes() - offset) {
            throw new IllegalArgumentException(
                    bytes + " bytes at " + offset + " of region " + region + ", which has " + whole.bytes());
        }
        return whole.slice(offset, bytes);
    }

    long bytes(int region) {
        return regions.get(region).span.bytes();
    }

    DeviceEvent event(int number) {
        EngineCodec.require(number >= 0 && number < events.size(), "event", number);
        return events.get(number);
    }

    /// Gives all of it back; what the device refuses stops none of the rest.
    ///
    /// @throws DeviceException the first that it refused
    void close() {
        ResourceScope all = new ResourceScope();
        regions.forEach(region -> all.register(region.giveBack));
        events.forEach(event -> all.register(event, DeviceEvent::close));
        events.clear();
        regions.clear();
        tokens.clear();
        all.releaseAll();
    }
}
