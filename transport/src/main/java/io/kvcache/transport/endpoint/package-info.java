/// The server's side: any `KvCache` made reachable for other processes.
///
/// [io.kvcache.transport.endpoint.Endpoint] holds the sessions. Each connection reads frames and replies through its
/// [io.kvcache.transport.net.FrameSink]. Leases and reservations belong to a session and end with it, at the latest
/// when the client was silent for longer than promised. Only [io.kvcache.transport.endpoint.TcpEndpoint] has sockets;
/// time comes from the caller.
@NullMarked
package io.kvcache.transport.endpoint;

import org.jspecify.annotations.NullMarked;
