/// The same cache from another process.
///
/// [io.kvcache.transport.endpoint.TcpEndpoint] serves any `KvCache`.
/// [io.kvcache.transport.client.RemoteKvCache] is a `KvCache` that such an endpoint serves.
///
/// | package | content |
/// |---|---|
/// | `wire` | messages and their bytes |
/// | `net` | frames over TCP and TLS |
/// | `endpoint`, `client` | the server's side and the client's |
/// | `shm` | memory that processes of one host share |
/// | `cluster` | where blocks and objects belong among several servers |
/// | `peer` | stores that share their blocks |
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.gpu`. The modules
/// `transport-aeron` and `transport-ucx` bring other carriers, as services of `net`.
@NullMarked
package io.kvcache.transport;

import org.jspecify.annotations.NullMarked;
