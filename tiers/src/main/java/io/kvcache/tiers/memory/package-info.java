/// Host memory mapped from the operating system through `java.lang.foreign`, and its first touch.
///
/// [io.kvcache.tiers.memory.MappedMemorySource] is the production
/// [io.kvcache.core.spi.HostMemorySource]; [io.kvcache.tiers.options.MemoryOptions] chooses what it maps,
/// [io.kvcache.tiers.memory.PagePrefaulter] has the kernel back the pages before the first request needs them.
///
/// [io.kvcache.tiers.memory.SharedMemorySource] shares it with other processes, index included.
///
/// May import `io.kvcache.core.memory`, the header of a shared index, `io.kvcache.tiers.os` and the JDK
/// only.
@NullMarked
package io.kvcache.tiers.memory;

import org.jspecify.annotations.NullMarked;
