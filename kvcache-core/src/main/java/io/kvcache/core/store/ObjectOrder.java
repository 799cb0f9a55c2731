package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// Puts objects behind those that are read before them, and tells policies of readers that went on.
///
/// **Threads.** One at a time, under the store's lock.
final class ObjectOrder {

    private final RecordPool pool;
    private final ObjectChains chains;
    private final Lifecycle lifecycle;

    ObjectOrder(StoreParts parts, Lifecycle lifecycle) {
        pool = parts.pool();
        chains = parts.chains();
        this.lifecycle = lifecycle;
    }

    /// An object that has a slot is behind another from now on, as far as [ObjectChains] can have it so.
    ///
    /// @param record or -1
    /// @param earlier or -1 for none
    /// @return whether it is so
    boolean follow(int record, int earlier) {
        if (record == NONE || pool.hostPage(record) == NONE || !Identity.isObject(pool.identity(record))) {
            return false;
        }
        if (chains.before(record) == earlier) {
            return true;
        }
        lifecycle.expose(chains.cut(record));
        if (!chains.link(record, earlier)) {
            return earlier == NONE;
        }
        continued(record);
        return true;
    }

    /// An object was used: whoever used the one before it has gone on.
    void continued(int record) {
        int before = chains.before(record);
        if (before != NONE && lifecycle.state(before) == Control.SEALED) {
            lifecycle.policyOf(before).onContinued(before);
        }
    }
}
