package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.NewRecordFields;
import io.kvcache.core.tree.RecordPool;

/// Keeps what disks have told of when the block above it goes before its own copy was told: a PLACEHOLDER
/// takes its place, as if it had never been there.
///
/// **Threads.** Owned by the store's lock.
record Placeholders(RecordPool pool, BlockTree tree) {

    /// A record that no disk has goes out of the index.
    void substituteFor(int record) {
        if (pool.diskAddress(record) != NONE || pool.diskChildren(record) == 0) {
            return;
        }
        NewRecordFields unknown = new NewRecordFields(
                pool.keyHi(record),
                pool.keyLo(record),
                NONE,
                pool.depth(record),
                RecordFlags.ofBlock(RecordFlags.namespaceId(pool.flags(record))),
                0,
                0,
                NONE);
        int placeholder = tree.insert(unknown, ControlWord.PLACEHOLDER, 0);
        if (placeholder != NONE) {
            tree.forEachChild(record, child -> {
                if (ControlWord.state(pool.control(child)) == ControlWord.ORPHAN) {
                    tree.reparent(child, placeholder);
                }
            });
        }
    }
}
