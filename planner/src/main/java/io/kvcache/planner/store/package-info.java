/// Replays traces through the real store with real bytes, and checks every byte that comes back. Replays too the traces
/// that a running server recorded, over stores of other sizes and policies.
@NullMarked
package io.kvcache.planner.store;

import org.jspecify.annotations.NullMarked;
