/// The tree of records: what the store knows of each block, off the heap, readable without a lock.
///
/// [io.kvcache.core.tree.RecordLayout] is the byte layout, [io.kvcache.core.tree.RecordPool] the fields,
/// [io.kvcache.core.tree.BlockTree] the index and the family links. Knows nothing of memory for blocks or of
/// policies.
@NullMarked
package io.kvcache.core.tree;

import org.jspecify.annotations.NullMarked;
