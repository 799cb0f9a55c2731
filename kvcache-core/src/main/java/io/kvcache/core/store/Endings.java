package io.kvcache.core.store;

import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// Makes records next victims wherever they are: in host memory, on the disk that alone has them,
/// and among what waits to be written; and takes that back of what is expected after all.
///
/// **Threads.** Owned by the store's lock.
final class Endings {

    private final RecordPool pool;
    private final Lifecycle lifecycle;
    private final DiskLedger disks;
    private final Offload offload;
    private final Over over;

    Endings(StoreParts parts, Lifecycle lifecycle) {
        pool = parts.pool();
        disks = parts.disks();
        offload = parts.offload();
        over = parts.over();
        this.lifecycle = lifecycle;
    }

    /// Makes a record a next victim, unless others have gone on from it.
    ///
    /// @return whether it is one
    boolean end(int record) {
        if (over.isGoneOnFrom(record)) {
            return false;
        }
        over.add(record);
        if (lifecycle.state(record) == Control.SEALED) {
            lifecycle.policyOf(record).demote(record);
            offload.notWanted(record);
        } else if (lifecycle.state(record) == Control.ON_DISK) {
            disks.order(record).demote(record);
        }
        return true;
    }

    /// Makes a record that is in host memory worth nothing there, whatever is below it.
    void demote(int record) {
        if (!end(record) && lifecycle.state(record) == Control.SEALED) {
            lifecycle.policyOf(record).demote(record);
        }
    }

    /// A record is known to be used soon, whatever was said of it before: it is over no longer.
    void expect(int record) {
        boolean resident = lifecycle.state(record) == Control.SEALED;
        if (over.has(record) && !resident) {
            disks.order(record).touch(record);
        }
        over.used(record);
        if (resident) {
            lifecycle.policyOf(record).expect(record);
        }
    }

    /// Whether a record is in host memory or on a disk, for good.
    boolean isSettled(int record) {
        int state = Control.state(pool.control(record));
        return state == Control.SEALED || state == Control.ON_DISK;
    }
}
