/// What an embedder may bring to a store in place of ours: [io.kvcache.core.spi.HostMemorySource] and
/// [io.kvcache.core.spi.Clock].
///
/// Imports nothing of KVCache.
@NullMarked
package io.kvcache.core.spi;

import org.jspecify.annotations.NullMarked;
