package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Which blocks are to be written anew before one that waits to be written below them: their copies left the disk
/// since it was queued. Once for each that waits, from above down, so that one which a disk refuses does not go round
/// for ever.
///
/// **Threads.** Owned by the store's lock.
final class AncestorRewrites {

    private final RecordPool pool;
    private long waitingHandle = NONE;
    private int depth;

    AncestorRewrites(RecordPool pool) {
        this.pool = pool;
    }

    /// The uppermost of the blocks above one that waits whose copies have left the disk, while they stayed resident;
    /// or [io.kvcache.core.policy.RecordView#NONE].
    int findMissingAncestor(int record) {
        int missing = NONE;
        for (int at = pool.parent(record); at != NONE && !isWrittenOrInFlight(at); at = pool.parent(at)) {
            missing = ControlWord.state(pool.control(at)) == ControlWord.SEALED ? at : NONE;
        }
        return missing;
    }

    /// Whether a block above one that waits was not yet written anew for it.
    boolean isFirstTime(long waiting, int above) {
        return waiting != waitingHandle || pool.depth(above) > depth;
    }

    /// A block is written anew for one that waits.
    void begin(long waiting, int above) {
        waitingHandle = waiting;
        depth = pool.depth(above);
    }

    /// The one that waited has had its turn.
    void clear() {
        waitingHandle = NONE;
    }

    boolean isWrittenOrInFlight(int record) {
        return pool.diskAddress(record) != NONE || RecordFlags.has(pool.flags(record), RecordFlags.WRITING);
    }
}
