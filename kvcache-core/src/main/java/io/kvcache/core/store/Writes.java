package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tier.TierOffer;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/// What becomes of records that were written to disk.
///
/// Writes end in any order, and on several disks at once, but a block counts only once the block above it
/// does. So one that is ahead of it waits, pinned as before.
///
/// **Threads.** Owned by the store's lock.
final class Writes {

    private final RecordPool pool;
    private final BlockTree tree;
    private final Offload offload;
    private final Lifecycle lifecycle;
    private final DiskLife diskLife;
    private final Map<Integer, List<Ended>> ahead = new HashMap<>();

    /// A write that has ended.
    private record Ended(int record, int disk, long place) {}

    Writes(StoreParts parts, Lifecycle lifecycle, DiskLife diskLife) {
        pool = parts.pool();
        tree = parts.tree();
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

    /// A span is about to be reclaimed: keeps what waits for a block above it, as far as that may be;
    /// what is not kept was not written.
    void offered(int disk, TierOffer offer) {
        Set<Long> waiting = new HashSet<>();
        ahead.values()
                .forEach(each ->
                        each.stream().filter(write -> write.disk == disk).forEach(write -> waiting.add(write.place)));
        for (int i = 0; i < offer.size() && !waiting.isEmpty(); i++) {
            if (waiting.contains(offer.place(i)) && !offer.keep(i)) {
                moved(disk, offer.place(i), NONE);
            }
        }
    }

    /// What was written lies elsewhere now.
    ///
    /// @param to or -1 when it is lost
    void moved(int disk, long from, long to) {
        change(write -> write.disk == disk && write.place == from, to);
    }

    /// What was written to a disk is lost.
    void out(int disk) {
        change(write -> write.disk == disk, NONE);
    }

    private void change(Predicate<Ended> such, long place) {
        ahead.values()
                .forEach(each -> each.replaceAll(
                        write -> such.test(write) ? new Ended(write.record, write.disk, place) : write));
    }

    private void settle(Ended write) {
        int record = write.record;
        boolean replaced = offload.ended(record, write.place == NONE ? NONE : write.disk);
        int state = lifecycle.state(record);
        boolean counts = write.place != NONE
                && state == Control.SEALED
                && pool.diskPlace(record) == NONE
                && diskLife.place(record, DiskNumber.place(write.disk, write.place), pool.checksum(record));
        if (counts) {
            offload.counters().written++;
            offload.burials().buryOutlived(record, write.disk);
        } else {
            offload.counters().notWritten++;
            offload.unwritten(record, replaced && write.place == NONE);
        }
        if (write.place != NONE && state == Control.DOOMED) {
            offload.wroteInVain(record, write.disk, replaced, tree.findOther(record));
        }
        lifecycle.letGo(record);
        diskLife.trim(write.disk);
    }
}
