/// Memory that grows where it is: a range of addresses for each sequence, with memory behind as much of
/// it as the sequence needs, so that an engine's kernels see one array (as in vAttention).
///
/// [io.kvcache.gpu.growth.VirtualMemoryPool] has the memory, [io.kvcache.gpu.growth.GrowableBuffer] is one
/// sequence's.
///
/// May import `io.kvcache.gpu.driver`.
@NullMarked
package io.kvcache.gpu.growth;

import org.jspecify.annotations.NullMarked;
