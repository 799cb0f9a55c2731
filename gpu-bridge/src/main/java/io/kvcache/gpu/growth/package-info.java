/// Buffers that grow in place, for an engine in this process (as in vAttention). Each sequence has a range of
/// addresses, and memory behind as much of it as it needs. An engine's kernels see one array.
///
/// A [io.kvcache.gpu.growth.VirtualMemoryPool] owns the memory; a [io.kvcache.gpu.growth.GrowableBuffer] belongs to
/// one sequence.
///
/// May import `io.kvcache.gpu.driver`.
@NullMarked
package io.kvcache.gpu.growth;

import org.jspecify.annotations.NullMarked;
