package io.kvcache.tiers;

import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierTransferStats;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What can be asked of a store's disks, also of a store that has none.
///
/// **Threads.** Any.
final class DiskOperations {

    private final @Nullable TierScheduler tierScheduler;

    DiskOperations(HostBlockTable.StoreContext storeContext) {
        tierScheduler = storeContext.tierScheduler();
    }

    boolean flush(long timeoutNanos) {
        TierScheduler by = tierScheduler;
        return by != null && by.awaitUntilInterrupted(by.flushBarrier(), timeoutNanos);
    }

    void reopen(int disk) {
        TierScheduler by = tierScheduler;
        if (by == null || disk < 0 || disk >= by.tierCount()) {
            throw new IndexOutOfBoundsException(
                    "disk " + disk + " of a store with " + (by == null ? 0 : by.tierCount()));
        }
        by.reopen(disk);
    }

    List<TierTransferStats> stats() {
        return tierScheduler == null ? List.of() : tierScheduler.stats();
    }

    double estimateReadNanos(long bytes) {
        return tierScheduler == null ? 0 : tierScheduler.estimateReadNanos(bytes);
    }

    boolean awaitRecovered(long timeoutNanos) {
        return tierScheduler == null || tierScheduler.awaitRecovered(timeoutNanos);
    }

    boolean isRecovering() {
        return tierScheduler != null && tierScheduler.isRecovering();
    }
}
