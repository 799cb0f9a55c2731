/// The standalone cache server: [io.kvcache.server.CacheServer] opens the store, its tiers and the listeners that a
/// configuration names, and closes them in the reverse order.
///
/// Front ends, configuration, metrics and access have packages of their own below. May import every other production
/// module; nothing but `io.kvcache.bench` may import it.
@NullMarked
package io.kvcache.server;

import org.jspecify.annotations.NullMarked;
