/// Caches over several servers, and what the servers of a cluster ask each other for.
///
/// [io.kvcache.transport.peer.ClusteredKvCache] is the cache of a client over all servers of a cluster,
/// [io.kvcache.transport.peer.NearKvCache] an embedded store over it. [io.kvcache.transport.peer.PeeredKvCache]
/// is that of a server of the cluster. Blocks travel in groups, which [io.kvcache.transport.cluster.Placement]
/// assigns to servers.
///
/// May import `cluster`, `client` and what is below it.
@NullMarked
package io.kvcache.transport.peer;

import org.jspecify.annotations.NullMarked;
