/// An embedded store that has other servers as its slowest tier.
///
/// [io.kvcache.transport.peer.PeeredKvCache] is a `KvCache` over an embedded one:
/// [io.kvcache.transport.peer.PeerStore] fetches missing blocks from peers, and replicates new ones to them.
/// Blocks travel in groups, which [io.kvcache.transport.cluster.Placement] assigns to peers.
///
/// May import `cluster`, `client` and what is below it.
@NullMarked
package io.kvcache.transport.peer;

import org.jspecify.annotations.NullMarked;
