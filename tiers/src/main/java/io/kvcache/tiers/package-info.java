/// The embedded store: host memory mapped from the operating system, and `TieredKvCache`, which puts
/// threads, deadlines and statistics around the store of `io.kvcache.core`. Disk tiers arrive here.
///
/// May import `io.kvcache.core`; never `io.kvcache.gpu` or `io.kvcache.transport`.
@NullMarked
package io.kvcache.tiers;

import org.jspecify.annotations.NullMarked;
