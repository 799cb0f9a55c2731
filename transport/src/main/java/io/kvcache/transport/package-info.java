/// The same cache from another process.
///
/// [io.kvcache.transport.endpoint.TcpEndpoint] serves any `KvCache`,
/// [io.kvcache.transport.client.RemoteKvCache] is one. What they say to each other is in `wire`, how
/// frames travel in `link`, what serves them in `endpoint`; `shm`, `aeron` and `ucx` are other ways than TCP.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.gpu`. Aeron and Agrona are used
/// in `aeron` alone.
@NullMarked
package io.kvcache.transport;

import org.jspecify.annotations.NullMarked;
