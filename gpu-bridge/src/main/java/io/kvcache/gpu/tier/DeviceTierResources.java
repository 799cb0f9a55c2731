package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.ResourceScope;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A tier's resources on its device: memory, three lanes, and the registration of the store's slots.
///
/// Onboarding and offloading have a lane each, so that both copy engines of a device run. Reclaim copies blocks
/// that it keeps by the third.
final class DeviceTierResources {

    private static final Logger LOG = System.getLogger(DeviceTierResources.class.getName());

    private final DeviceDriver driver;
    private final ResourceScope resources = new ResourceScope();
    private final TierMemory memory;
    private final CopyQueue uploads;
    private final CopyQueue downloads;
    private final CopyQueue internalCopies;
    private @Nullable MemorySegment registered;
    private boolean closed;

    private DeviceTierResources(DeviceDriver driver, DeviceGeometry geometry, MemorySegment slots) {
        this.driver = driver;
        try {
            memory = resources.register(TierMemory.open(driver, geometry), TierMemory::close);
            uploads = resources.register(new CopyQueue(driver, CopyBatch.toDevice()), CopyQueue::close);
            downloads = resources.register(new CopyQueue(driver, CopyBatch.toHost()), CopyQueue::close);
            internalCopies = resources.register(new CopyQueue(driver, CopyBatch.within()), CopyQueue::close);
            registered = register(driver, slots);
        } catch (DeviceException refused) {
            throw resources.releaseAfter(refused);
        }
    }

    /// Takes what the tier needs.
    ///
    /// @param driver is the tier's from here on, and closed when this fails
    /// @param slots of the store, or an empty segment when they are to stay unregistered
    /// @throws DeviceException when the device refuses
    static DeviceTierResources open(DeviceDriver driver, DeviceGeometry geometry, MemorySegment slots) {
        try {
            return new DeviceTierResources(driver, geometry, slots);
        } catch (DeviceException refused) {
            closeWithAll(driver);
            throw refused;
        }
    }

    /// Registers the slots; answers what is registered now, null when nothing is.
    static @Nullable MemorySegment register(DeviceDriver driver, MemorySegment slots) {
        if (slots.byteSize() == 0) {
            return null;
        }
        DeviceException refused = driver.tryRegister(slots);
        if (refused == null) {
            return slots;
        }
        LOG.log(Level.WARNING, "host memory stays unregistered, and copies slower: {0}", refused.getMessage());
        return null;
    }

    TierMemory memory() {
        return memory;
    }

    CopyQueue uploads() {
        return uploads;
    }

    CopyQueue downloads() {
        return downloads;
    }

    CopyQueue internalCopies() {
        return internalCopies;
    }

    String describe() {
        return driver.info().name() + (registered == null ? ", plain host memory" : ", registered host memory");
    }

    int tick() {
        int ended = 0;
        for (CopyQueue copyQueue : queues()) {
            copyQueue.submit();
            ended += copyQueue.poll();
        }
        return ended;
    }

    boolean isBusy() {
        return uploads.isBusy() || downloads.isBusy() || internalCopies.isBusy();
    }

    /// Returns whether the device has no more work of this tier.
    boolean isIdle() {
        return uploads.isIdle() && downloads.isIdle() && internalCopies.isIdle();
    }

    /// Tells all that is on its way that it will not arrive.
    void abandon() {
        queues().forEach(CopyQueue::abandon);
    }

    private List<CopyQueue> queues() {
        return List.of(uploads, downloads, internalCopies);
    }

    /// Gives everything back, once.
    ///
    /// @param besides gives back what others have of the device
    void close(Runnable besides) {
        if (closed) {
            return;
        }
        closed = true;
        resources.register(this::unregister);
        resources.register(besides);
        try {
            resources.releaseAll();
        } catch (DeviceException refused) {
            LOG.log(Level.WARNING, "not given back by itself, but with the device: {0}", refused.getMessage());
            closeWithAll(driver);
            return;
        }
        driver.close();
    }

    /// Lets go of the store's slots alone: they may be unmapped while the rest is in use. Nothing is
    /// on its way there.
    void unregisterSlots() {
        try {
            unregister();
        } catch (DeviceException refused) {
            LOG.log(Level.WARNING, "host memory stays registered: {0}", refused.getMessage());
        }
    }

    private void unregister() {
        MemorySegment slots = registered;
        if (slots != null) {
            registered = null;
            driver.unregister(slots);
        }
    }

    private static void closeWithAll(DeviceDriver driver) {
        try {
            driver.close();
        } catch (IllegalStateException left) {
            LOG.log(Level.DEBUG, "closed with all that it had", left);
        }
    }
}
