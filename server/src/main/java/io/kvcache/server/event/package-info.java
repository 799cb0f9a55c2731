/// Events of what is stored and removed, for followers over HTTP as server-sent events.
///
/// [io.kvcache.server.event.EventFeed] follows the store for all of them.
///
/// May not import another protocol or the keyspace.
@NullMarked
package io.kvcache.server.event;

import org.jspecify.annotations.NullMarked;
