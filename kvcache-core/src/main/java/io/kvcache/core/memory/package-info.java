/// Host memory, cut into slabs and slots.
///
/// [io.kvcache.core.spi.HostMemory] hides the source of the memory; this package never maps any itself.
@NullMarked
package io.kvcache.core.memory;

import org.jspecify.annotations.NullMarked;
