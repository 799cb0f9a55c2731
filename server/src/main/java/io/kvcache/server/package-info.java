/// The standalone cache server: [io.kvcache.server.CacheServer] opens the store, its tiers and the listeners that a
/// configuration names, and closes them in the reverse order.
///
/// Front ends, configuration, metrics, access and the command line that ships have packages of their own below. Imports
/// `io.kvcache.core`, `io.kvcache.tiers` and `io.kvcache.transport`, and neither `io.kvcache.gpu` nor an engine. Only
/// modules with a command line may import it.
@NullMarked
package io.kvcache.server;

import org.jspecify.annotations.NullMarked;
