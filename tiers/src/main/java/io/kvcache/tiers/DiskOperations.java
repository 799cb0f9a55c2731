package io.kvcache.tiers;

import io.kvcache.tiers.movement.Movement;
import io.kvcache.tiers.movement.MoverStats;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What can be asked of a store's disks, also of a store that has none.
///
/// **Threads.** Any.
final class DiskOperations {

    private final @Nullable Movement tierScheduler;

    DiskOperations(HostTable.StoreContext storeContext) {
        tierScheduler = storeContext.tierScheduler();
    }

    boolean flush(long timeoutNanos) {
        Movement by = tierScheduler;
        return by != null && by.awaitUntilInterrupted(by.flush(), timeoutNanos);
    }

    void reopen(int disk) {
        Movement by = tierScheduler;
        if (by == null || disk < 0 || disk >= by.tiers()) {
            throw new IndexOutOfBoundsException("disk " + disk + " of a store with " + (by == null ? 0 : by.tiers()));
        }
        by.reopen(disk);
    }

    List<MoverStats> stats() {
        return tierScheduler == null ? List.of() : tierScheduler.stats();
    }

    double estimateReadNanos(long bytes) {
        return tierScheduler == null ? 0 : tierScheduler.readNanos(bytes);
    }

    boolean awaitRecovered(long timeoutNanos) {
        return tierScheduler == null || tierScheduler.awaitRecovered(timeoutNanos);
    }

    boolean isRecovering() {
        return tierScheduler != null && tierScheduler.recovering();
    }
}
