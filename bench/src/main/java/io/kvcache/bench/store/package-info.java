/// Replay through the real store with real bytes: every byte that comes back is checked.
@NullMarked
package io.kvcache.bench.store;

import org.jspecify.annotations.NullMarked;
