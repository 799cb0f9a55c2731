package io.kvcache.core.store;

import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Makes records next victims wherever they are: in host memory, on the disk that alone has them,
/// and among what waits to be written; and takes that back of what is expected after all.
///
/// **Threads.** Owned by the store's lock.
final class EvictNextMarker {

    private final RecordPool pool;
    private final RecordStates recordStates;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final ExpiredBlocks expiredBlocks;

    EvictNextMarker(StoreComponents parts, RecordStates recordStates) {
        pool = parts.pool();
        disks = parts.diskUsageTable();
        writeBackQueue = parts.writeBackQueue();
        expiredBlocks = parts.expiredBlocks();
        this.recordStates = recordStates;
    }

    /// Makes a record a next victim, unless others have gone on from it.
    ///
    /// @return whether it is one
    boolean demoteUnlessContinued(int record) {
        if (expiredBlocks.hasLiveChildren(record)) {
            return false;
        }
        expiredBlocks.add(record);
        if (recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
            writeBackQueue.cancelWrite(record);
        } else if (recordStates.stateOf(record) == ControlWord.ON_DISK) {
            disks.order(record).demote(record);
        }
        return true;
    }

    /// Makes a record that is in host memory worth nothing there, whatever is below it.
    void demote(int record) {
        if (!demoteUnlessContinued(record) && recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
        }
    }

    /// A record is known to be used soon, whatever was said of it before: it is over no longer.
    void expect(int record) {
        boolean resident = recordStates.stateOf(record) == ControlWord.SEALED;
        if (expiredBlocks.contains(record) && !resident) {
            disks.order(record).touch(record);
        }
        expiredBlocks.onUsed(record);
        if (resident) {
            recordStates.policyOf(record).expect(record);
        }
    }

    /// Whether a record is in host memory or on a disk, for good.
    boolean isSettled(int record) {
        int state = ControlWord.state(pool.control(record));
        return state == ControlWord.SEALED || state == ControlWord.ON_DISK;
    }
}
