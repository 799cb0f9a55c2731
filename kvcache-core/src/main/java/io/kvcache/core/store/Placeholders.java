package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordPool;

/// Keeps what disks have told of when the block above it goes before its own copy was told: a PHANTOM
/// takes its place, as if it had never been there.
///
/// **Threads.** Owned by the store's lock.
record Placeholders(RecordPool pool, BlockTree tree) {

    /// A record that no disk has goes out of the index.
    void substituteFor(int record) {
        if (pool.diskPlace(record) != NONE || pool.diskChildren(record) == 0) {
            return;
        }
        NewRecord unknown = new NewRecord(
                pool.keyHi(record),
                pool.keyLo(record),
                NONE,
                pool.depth(record),
                RecordFlags.ofBlock(RecordFlags.namespaceId(pool.identity(record))),
                0,
                0,
                NONE);
        int phantom = tree.insert(unknown, Control.PHANTOM, 0);
        if (phantom != NONE) {
            tree.eachChild(record, child -> {
                if (Control.state(pool.control(child)) == Control.DETACHED) {
                    tree.move(child, phantom);
                }
            });
        }
    }
}
