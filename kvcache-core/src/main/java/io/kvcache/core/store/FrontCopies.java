package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Copies on devices in front of the disks. Nothing depends on one: its block is on a disk or in host memory too,
/// or goes with it.
///
/// A device gets a copy of each block that is being written to a disk or has come from there. One that leaves host
/// memory before its turn gets none.
///
/// **Threads.** Owned by the store's lock.
final class FrontCopies {

    /// Blocks that may wait for a device; beyond that they get no copy.
    private static final int MAX_WAITING = 1 << 14;

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final StoreEvents storeEvents;
    /// By device, handles of records.
    private final Map<Integer, ArrayDeque<Long>> waiting = new HashMap<>();

    FrontCopies(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        disks = store.disks;
        writeBackQueue = store.writeBackQueue;
        recordStates = store.recordStates;
        storeEvents = store.storeEvents;
    }

    /// A record in host memory is worth a copy.
    ///
    /// @param record or -1
    void offer(int record) {
        int disk = record == NONE || RecordFlags.isObject(pool.flags(record)) ? NONE : disks.frontOf(record);
        if (disk != NONE && disks.frontAddress(record) == NONE) {
            ArrayDeque<Long> queue = queueOf(disk);
            if (queue.size() < MAX_WAITING) {
                queue.add(RecordHandle.of(ControlWord.generation(pool.control(record)), record));
            }
        }
    }

    private ArrayDeque<Long> queueOf(int disk) {
        return waiting.computeIfAbsent(disk, _ -> new ArrayDeque<>());
    }

    /// Takes the next record for a device and pins it, until [#onWritten]; -1 when none waits.
    int poll(int disk) {
        ArrayDeque<Long> queue = queueOf(disk);
        while (!queue.isEmpty()) {
            long next = queue.remove();
            int record = RecordHandle.record(next);
            long control = pool.control(record);
            boolean same = ControlWord.generation(control) == RecordHandle.generation(next);
            if (same && ControlWord.state(control) == ControlWord.LOADED) { // the block above it is on its way
                queue.addFirst(next);
                return NONE;
            }
            if (same && ControlWord.state(control) == ControlWord.SEALED && disks.frontAddress(record) == NONE) {
                pool.transition(record, ControlWord.SEALED, 1);
                return record;
            }
        }
        return NONE;
    }

    /// A write has ended.
    ///
    /// @param address or -1 when nothing was written
    void onWritten(int record, int disk, long address) {
        boolean counts = recordStates.stateOf(record) == ControlWord.SEALED && disks.frontAddress(record) == NONE;
        if (address != NONE && counts) {
            disks.setFrontAddress(record, DiskAddress.of(disk, address));
            storeEvents.onStored(record, TierKind.DEVICE);
        } else if (address != NONE) {
            writeBackQueue.tombstones().add(record, disk); // it was dropped meanwhile
        }
        recordStates.release(record);
    }

    /// A copy was written elsewhere on its device.
    ///
    /// @param to the new address, or -1 when the copy is lost
    void onMoved(TierBlock block, long from, long to) {
        int record = recordAt(block.keyHi(), block.keyLo(), from);
        if (record != NONE && to == NONE) {
            recordStates.leaveFront(record, EventKind.EVICTED);
        } else if (record != NONE) {
            disks.updateFrontAddress(record, to);
        }
    }

    private int recordAt(long keyHi, long keyLo, long address) {
        int record = tree.findAny(keyHi, keyLo);
        return record != NONE && disks.frontAddress(record) == address ? record : NONE;
    }

    /// Forgets the copies of a device, in a run of record numbers.
    void forget(int disk, int from, int to) {
        for (int record = from; record < to; record++) {
            if (disks.frontAddress(record) != NONE && DiskAddress.diskOf(disks.frontAddress(record)) == disk) {
                recordStates.leaveFront(record, EventKind.EVICTED);
            }
        }
    }

    /// A copy in a span that is about to be reclaimed.
    private record Candidate(int index, int record, boolean isWanted, double score) {}

    /// Keeps the copies that the policy wants most of a span of a device, as far as there is room; under a policy
    /// without scores, those that were used since they came there or were last kept. The others do not count any
    /// longer.
    void reclaim(int disk, ReclaimCandidates offer) {
        List<Candidate> candidates = new ArrayList<>();
        for (int i = 0; i < offer.size(); i++) {
            int record = recordAt(offer.keyHi(i), offer.keyLo(i), DiskAddress.of(disk, offer.address(i)));
            if (record != NONE) {
                boolean used = disks.testAndClearUsedInFront(record);
                double score = recordStates.score(offer.keyHi(i), offer.keyLo(i));
                boolean scored = !Double.isNaN(score);
                candidates.add(new Candidate(i, record, scored ? score > 0 : used, scored ? score : 0));
            }
        }
        candidates.sort(Comparator.comparingDouble(Candidate::score).reversed());
        for (Candidate each : candidates) {
            if (!each.isWanted || !offer.keep(each.index)) {
                recordStates.leaveFront(each.record, EventKind.EVICTED);
            }
        }
    }
}
