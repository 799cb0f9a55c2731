package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Puts objects behind those that are read before them, and tells policies of readers that went on.
///
/// **Threads.** One at a time, under the store's lock.
final class ObjectSequence {

    private final RecordPool pool;
    private final ObjectLinks objectLinks;
    private final RecordStates recordStates;

    ObjectSequence(StoreComponents parts, RecordStates recordStates) {
        pool = parts.pool();
        objectLinks = parts.objectLinks();
        this.recordStates = recordStates;
    }

    /// An object that has a slot is behind another from now on, as far as [ObjectLinks] can have it so.
    ///
    /// @param record or -1
    /// @param earlier or -1 for none
    /// @return whether it is so
    boolean linkAfter(int record, int earlier) {
        if (record == NONE || pool.hostPage(record) == NONE || !RecordFlags.isObject(pool.flags(record))) {
            return false;
        }
        if (objectLinks.predecessor(record) == earlier) {
            return true;
        }
        recordStates.notifyIfLeaf(objectLinks.unlink(record));
        if (!objectLinks.link(record, earlier)) {
            return earlier == NONE;
        }
        onUsed(record);
        return true;
    }

    /// An object was used: whoever used the one before it has gone on.
    void onUsed(int record) {
        int before = objectLinks.predecessor(record);
        if (before != NONE && recordStates.stateOf(before) == ControlWord.SEALED) {
            recordStates.policyOf(before).onContinued(before);
        }
    }
}
