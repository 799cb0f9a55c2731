package io.kvcache.gpu.engine;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.paging.StagedCopier;
import io.kvcache.gpu.paging.StagingBuffer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/// How an engine's pieces travel: copied together, or small ones by way of a room, where a kernel moves
/// them. The latter takes memory of the device and code there, so both come with the first pool that has
/// small pieces; and host memory that is registered, as copies wait for the host with any other.
///
/// **Threads.** The session's.
final class TransferStrategy {

    private static final Logger LOG = System.getLogger(TransferStrategy.class.getName());

    private final DeviceDriver driver;
    private final boolean queued;
    private final EngineCopyThreshold threshold;
    private @Nullable StagedCopier staged;
    private boolean prepared;

    /// @param queued whether the driver queues copies of the slots, see [PinnedSlots]
    TransferStrategy(DeviceDriver driver, boolean queued, EngineCopyThreshold threshold) {
        this.driver = driver;
        this.queued = queued;
        this.threshold = threshold;
    }

    /// Whether the driver queues copies of the slots.
    boolean queuesCopies() {
        return queued;
    }

    /// Has rooms ready for a pool, if it may need any and they are to be had.
    ///
    /// @throws DeviceException when the device is of no use
    void prepare(PagedLayout layout) {
        boolean small = StagedCopier.supports(layout) && threshold.canStage(layout.pieceBytes());
        if (!queued || prepared || !small) {
            return;
        }
        prepared = true;
        try {
            staged = StagedCopier.open(driver, threshold);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            LOG.log(Level.INFO, "an engine''s small pieces are copied one by one: {0}", refused.getMessage());
        }
    }

    /// A room for these copies; null when they are to be made as they are.
    ///
    /// @throws IllegalArgumentException when two of them write to the same place
    @Nullable
    StagingBuffer acquireBuffer(PagedLayout layout, CopyBatch copies) {
        StagedCopier present = staged;
        return present == null ? null : present.acquireBuffer(layout, copies);
    }

    /// Gives back what it took, when nothing is on its way any more.
    void close() {
        StagedCopier present = staged;
        if (present != null) {
            staged = null;
            present.close();
        }
    }
}
