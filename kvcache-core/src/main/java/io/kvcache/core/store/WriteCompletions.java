package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
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
final class WriteCompletions {

    private final RecordPool pool;
    private final BlockTree tree;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final DiskResidency diskResidency;
    private final Map<Integer, List<Completion>> waitingForParent = new HashMap<>();

    /// A write that has ended.
    private record Completion(int record, int disk, long address) {}

    WriteCompletions(StoreComponents parts, RecordStates recordStates, DiskResidency diskResidency) {
        pool = parts.pool();
        tree = parts.tree();
        writeBackQueue = parts.writeBackQueue();
        this.recordStates = recordStates;
        this.diskResidency = diskResidency;
    }

    /// @param address or -1 when nothing was written
    void onCompleted(int record, int disk, long address) {
        Completion write = new Completion(record, disk, address);
        int parent = pool.parent(record);
        if (parent != NONE && RecordFlags.has(pool.flags(parent), RecordFlags.WRITING)) {
            waitingForParent.computeIfAbsent(parent, _ -> new ArrayList<>()).add(write);
            return;
        }
        ArrayDeque<Completion> ready = new ArrayDeque<>();
        for (Completion next = write; next != null; next = ready.poll()) {
            List<Completion> waited = waitingForParent.remove(next.record);
            settle(next);
            if (waited != null) {
                ready.addAll(waited);
            }
        }
    }

    /// A span is about to be reclaimed: keeps what waits for a block above it, as far as that may be;
    /// what is not kept was not written.
    void onReclaim(int disk, ReclaimCandidates offer) {
        Set<Long> waiting = new HashSet<>();
        waitingForParent
                .values()
                .forEach(each ->
                        each.stream().filter(write -> write.disk == disk).forEach(write -> waiting.add(write.address)));
        for (int i = 0; i < offer.size() && !waiting.isEmpty(); i++) {
            if (waiting.contains(offer.address(i)) && !offer.keep(i)) {
                onMoved(disk, offer.address(i), NONE);
            }
        }
    }

    /// What was written lies elsewhere now.
    ///
    /// @param to or -1 when it is lost
    void onMoved(int disk, long from, long to) {
        change(write -> write.disk == disk && write.address == from, to);
    }

    /// What was written to a disk is lost.
    void onDiskLost(int disk) {
        change(write -> write.disk == disk, NONE);
    }

    private void change(Predicate<Completion> such, long address) {
        waitingForParent
                .values()
                .forEach(each -> each.replaceAll(
                        write -> such.test(write) ? new Completion(write.record, write.disk, address) : write));
    }

    private void settle(Completion write) {
        int record = write.record;
        boolean replaced = writeBackQueue.onWriteCompleted(record, write.address == NONE ? NONE : write.disk);
        int state = recordStates.stateOf(record);
        boolean counts = write.address != NONE
                && state == ControlWord.SEALED
                && pool.diskAddress(record) == NONE
                && diskResidency.addCopy(record, DiskAddress.of(write.disk, write.address), pool.checksum(record));
        if (counts) {
            writeBackQueue.counters().written++;
            writeBackQueue.tombstones().releaseDeferred(record, write.disk);
        } else {
            writeBackQueue.counters().notWritten++;
            writeBackQueue.unwritten(record, replaced && write.address == NONE);
        }
        if (write.address != NONE && state == ControlWord.DELETED) {
            writeBackQueue.onStaleWrite(record, write.disk, replaced, tree.findDuplicate(record));
        }
        recordStates.release(record);
        diskResidency.trim(write.disk);
    }
}
