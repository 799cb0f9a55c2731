package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// What becomes of records that were written to disk.
///
/// Writes end in any order, and on several disks at once, but a block counts only once the block above it does.
/// So one that is ahead of it waits, pinned as before.
///
/// **Threads.** Owned by the store's lock.
final class Writes {

    private final RecordPool pool;
    private final Offload offload;
    private final Lifecycle lifecycle;
    private final DiskLife diskLife;
    private final Map<Integer, List<Ended>> ahead = new HashMap<>();

    /// A write that has ended.
    private record Ended(int record, int disk, long place) {}

    Writes(StoreParts parts, Lifecycle lifecycle, DiskLife diskLife) {
        pool = parts.pool();
        offload = parts.offload();
        this.lifecycle = lifecycle;
        this.diskLife = diskLife;
    }

    /// @param place or -1 when nothing was written
    void ended(int record, int disk, long place) {
        Ended write = new Ended(record, disk, place);
        int parent = pool.parent(record);
        if (parent != NONE && Identity.has(pool.identity(parent), Identity.WRITING)) {
            ahead.computeIfAbsent(parent, _ -> new ArrayList<>()).add(write);
            return;
        }
        ArrayDeque<Ended> ready = new ArrayDeque<>();
        for (Ended next = write; next != null; next = ready.poll()) {
            List<Ended> waited = ahead.remove(next.record);
            settle(next);
            if (waited != null) {
                ready.addAll(waited);
            }
        }
    }

    private void settle(Ended write) {
        int record = write.record;
        offload.ended(record, write.place == NONE ? NONE : write.disk);
        int state = lifecycle.state(record);
        boolean counts = write.place != NONE
                && state == Control.SEALED
                && pool.diskPlace(record) == NONE
                && diskLife.place(record, DiskNumber.place(write.disk, write.place), pool.checksum(record));
        if (counts) {
            offload.counters().written++;
        } else {
            offload.counters().notWritten++;
            offload.unwritten(record);
        }
        if (write.place != NONE && state == Control.DOOMED) {
            offload.bury(record, write.disk);
        }
        lifecycle.letGo(record);
        diskLife.trim(write.disk);
    }
}
