package io.kvcache.core.store;

import io.kvcache.core.event.EventLog;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordPool;

/// What the collaborators of one store share. Owned by the store's lock, where their own pages do not say
/// otherwise.
record StoreParts(
        RecordPool pool,
        BlockTree tree,
        SlabPool slabs,
        ClassPolicies policies,
        Namespaces namespaces,
        EventLog events) {}
