package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import org.jspecify.annotations.Nullable;

/// The memory of a tier, at addresses that stay: allocated at once, or, where it may grow, region by region behind
/// a range of addresses.
///
/// Owned by the tier's thread.
final class TierMemory {

    private final DeviceDriver driver;
    private final DeviceGeometry geometry;
    private final @Nullable VirtualMemory virtual;
    private final DeviceSpan span;
    private final @Nullable PhysicalPages[] pages;

    private TierMemory(DeviceDriver driver, DeviceGeometry geometry) {
        this.driver = driver;
        this.geometry = geometry;
        pages = new PhysicalPages[geometry.maxRegions()];
        virtual = geometry.canResize() ? driver.virtualMemory() : null;
        span = virtual == null ? driver.allocate(geometry.bytes()) : virtual.reserve(geometry.maxBytes());
    }

    /// Takes what the tier has at first.
    ///
    /// @throws DeviceException when the device refuses
    static TierMemory open(DeviceDriver driver, DeviceGeometry geometry) {
        TierMemory memory = new TierMemory(driver, geometry);
        try {
            for (int region = 0; memory.virtual != null && region < geometry.regions(); region++) {
                memory.add(region);
            }
            return memory;
        } catch (DeviceException refused) {
            try {
                memory.close();
            } catch (DeviceException again) {
                refused.addSuppressed(again);
            }
            throw refused;
        }
    }

    /// All addresses, whether there is memory behind them or not.
    DeviceSpan span() {
        return span;
    }

    private DeviceSpan regionSpan(int region) {
        return span.slice(region * geometry.regionBytes(), geometry.regionBytes());
    }

    /// Puts memory behind a region.
    ///
    /// @throws DeviceException when the device refuses, or has no more memory; the region has none then
    void add(int region) {
        VirtualMemory memory = requireGrowing();
        PhysicalPages added = memory.create(geometry.regionBytes());
        try {
            memory.map(regionSpan(region).address(), added);
        } catch (DeviceException refused) {
            memory.release(added);
            throw refused;
        }
        pages[region] = added;
    }

    /// Gives the memory of a region back to the device. Nothing is read or written there.
    void remove(int region) {
        PhysicalPages removed = pages[region];
        if (removed != null) {
            VirtualMemory memory = requireGrowing();
            memory.unmap(regionSpan(region).address(), removed);
            pages[region] = null;
            memory.release(removed);
        }
    }

    private VirtualMemory requireGrowing() {
        if (virtual == null) {
            throw new IllegalStateException("a tier of fixed size");
        }
        return virtual;
    }

    /// Gives all back.
    ///
    /// @throws DeviceException the first that the device refused
    void close() {
        if (virtual == null) {
            driver.free(span);
            return;
        }
        for (int region = 0; region < pages.length; region++) {
            remove(region);
        }
        virtual.unreserve(span);
    }
}
