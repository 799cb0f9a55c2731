/// The store itself for other JVMs, by the protocol of PROTOCOL.md.
///
/// [io.kvcache.server.remote.RemoteEndpoint] opens the endpoint of `io.kvcache.transport` for a server: which
/// clients it accepts, what is kept from them, and how it ends.
///
/// May not import another protocol.
@NullMarked
package io.kvcache.server.remote;

import org.jspecify.annotations.NullMarked;
