/// Host memory, cut into slabs and slots.
///
/// Where the memory comes from is behind [io.kvcache.core.memory.HostMemory]; this package never maps any itself.
@NullMarked
package io.kvcache.core.memory;

import org.jspecify.annotations.NullMarked;
