package io.kvcache.tiers;

import io.kvcache.tiers.movement.Movement;
import io.kvcache.tiers.movement.MoverStats;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What can be asked of a store's disks, also of a store that has none.
///
/// **Threads.** Any.
final class DiskVerbs {

    private final @Nullable Movement movement;

    DiskVerbs(HostTable.Source source) {
        movement = source.movement();
    }

    boolean flush(long timeoutNanos) {
        Movement by = movement;
        return by != null && by.awaitUntilInterrupted(by.flush(), timeoutNanos);
    }

    void reopen(int disk) {
        Movement by = movement;
        if (by == null || disk < 0 || disk >= by.tiers()) {
            throw new IndexOutOfBoundsException("disk " + disk + " of a store with " + (by == null ? 0 : by.tiers()));
        }
        by.reopen(disk);
    }

    List<MoverStats> stats() {
        return movement == null ? List.of() : movement.stats();
    }

    double readNanos(long bytes) {
        return movement == null ? 0 : movement.readNanos(bytes);
    }

    boolean awaitRecovered(long timeoutNanos) {
        return movement == null || movement.awaitRecovered(timeoutNanos);
    }

    boolean recovering() {
        return movement != null && movement.recovering();
    }
}
