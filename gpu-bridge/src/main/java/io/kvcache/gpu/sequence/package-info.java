/// Paged KV memory for an engine in this process: sequences whose block tables are addresses in a GPU tier, and
/// whose full pages are blocks that others find.
///
/// [io.kvcache.gpu.sequence.PagedKvCache] is where to begin.
@NullMarked
package io.kvcache.gpu.sequence;

import org.jspecify.annotations.NullMarked;
