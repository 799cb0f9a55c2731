/// An embedded store whose slowest tier is other servers.
///
/// [io.kvcache.transport.peer.PeeredKvCache] is a `KvCache` over an embedded one:
/// [io.kvcache.transport.peer.PeerStore] asks peers for what is missing there, and gives them what is
/// new. Blocks travel in groups of 64, each of which has a peer by rendezvous hashing.
///
/// May import `remote` and what is below it.
@NullMarked
package io.kvcache.transport.peer;

import org.jspecify.annotations.NullMarked;
