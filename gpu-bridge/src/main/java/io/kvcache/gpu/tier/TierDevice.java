package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.ResourceScope;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What a tier has of its device: memory, three lanes, and the registration of the store's slots.
///
/// Onboard and offload have a lane each, so that both copy engines of a device run; what a reclaim keeps
/// has the third.
final class TierDevice {

    private static final Logger LOG = System.getLogger(TierDevice.class.getName());

    private final DeviceDriver driver;
    private final ResourceScope holdings = new ResourceScope();
    private final DeviceSpan memory;
    private final Lane up;
    private final Lane down;
    private final Lane within;
    private @Nullable MemorySegment registered;
    private boolean closed;

    private TierDevice(DeviceDriver driver, long bytes, MemorySegment slots) {
        this.driver = driver;
        try {
            memory = holdings.register(driver.allocate(bytes), driver::free);
            up = holdings.register(new Lane(driver, CopyBatch.toDevice()), Lane::close);
            down = holdings.register(new Lane(driver, CopyBatch.toHost()), Lane::close);
            within = holdings.register(new Lane(driver, CopyBatch.within()), Lane::close);
            registered = register(driver, slots);
        } catch (DeviceException refused) {
            throw holdings.releaseAfter(refused);
        }
    }

    /// Takes what the tier needs.
    ///
    /// @param driver is the tier's from here on, and closed when this fails
    /// @param slots of the store, or an empty segment when they are to stay unregistered
    /// @throws DeviceException when the device refuses
    static TierDevice open(DeviceDriver driver, long bytes, MemorySegment slots) {
        try {
            return new TierDevice(driver, bytes, slots);
        } catch (DeviceException refused) {
            closeWithAll(driver);
            throw refused;
        }
    }

    /// Copies go without as well, slower: containers often limit how much memory may be fixed in place.
    ///
    /// @return what is registered now; null when nothing is
    static @Nullable MemorySegment register(DeviceDriver driver, MemorySegment slots) {
        if (slots.byteSize() == 0) {
            return null;
        }
        try {
            driver.register(slots);
            return slots;
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            LOG.log(Level.WARNING, "host memory stays unregistered, and copies slower: {0}", refused.getMessage());
            return null;
        }
    }

    DeviceSpan memory() {
        return memory;
    }

    Lane up() {
        return up;
    }

    Lane down() {
        return down;
    }

    Lane within() {
        return within;
    }

    String describe() {
        return driver.info().name() + (registered == null ? ", plain host memory" : ", registered host memory");
    }

    int tick() {
        int ended = 0;
        for (Lane lane : lanes()) {
            lane.submit();
            ended += lane.poll();
        }
        return ended;
    }

    boolean busy() {
        return up.busy() || down.busy() || within.busy();
    }

    /// Whether the device does nothing of ours any more.
    boolean quiet() {
        return up.quiet() && down.quiet() && within.quiet();
    }

    /// Tells all that is on its way that it will not arrive.
    void abandon() {
        lanes().forEach(Lane::abandon);
    }

    private List<Lane> lanes() {
        return List.of(up, down, within);
    }

    /// Gives everything back, once.
    ///
    /// @param besides gives back what others have of the device
    void close(Runnable besides) {
        if (closed) {
            return;
        }
        closed = true;
        holdings.register(this::unregister);
        holdings.register(besides);
        try {
            holdings.releaseAll();
        } catch (DeviceException refused) {
            LOG.log(Level.WARNING, "not given back by itself, but with the device: {0}", refused.getMessage());
            closeWithAll(driver);
            return;
        }
        driver.close();
    }

    /// Lets go of the store's slots alone: they may be unmapped while the rest is in use. Nothing is
    /// on its way there.
    void letGoOfSlots() {
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
