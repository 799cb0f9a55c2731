package io.kvcache.gpu.engine;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// The store's host memory, fixed in place for the device while a session lasts: copies are then queued,
/// and wait in their stream for what comes before. With other memory the driver itself waits, within the
/// call that asks for the copy, for as long as that takes.
///
/// **Threads.** The session's.
final class PinnedSlots implements AutoCloseable {

    private static final Logger LOG = System.getLogger(PinnedSlots.class.getName());

    private final DeviceDriver driver;
    private @Nullable MemorySegment fixed;

    private PinnedSlots(DeviceDriver driver, @Nullable MemorySegment fixed) {
        this.driver = driver;
        this.fixed = fixed;
    }

    /// Fixes it, or finds that it cannot be: containers often limit how much may be.
    ///
    /// @param memory of the store, or null when that has none here
    /// @throws DeviceException when the device is of no use
    static PinnedSlots pin(DeviceDriver driver, @Nullable MemorySegment memory) {
        if (memory == null || memory.byteSize() == 0) {
            return new PinnedSlots(driver, null);
        }
        try {
            driver.register(memory);
            return new PinnedSlots(driver, memory);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            LOG.log(
                    Level.WARNING,
                    "host memory stays unregistered: an engine's copies are slower, and its events are waited for "
                            + "before a copy is queued: {0}",
                    refused.getMessage());
            return new PinnedSlots(driver, null);
        }
    }

    /// Whether it is.
    boolean isPinned() {
        return fixed != null;
    }

    /// Ends that, when nothing is on its way there.
    @Override
    public void close() {
        MemorySegment memory = fixed;
        if (memory != null) {
            fixed = null;
            driver.unregister(memory);
        }
    }
}
