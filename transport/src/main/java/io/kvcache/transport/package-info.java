/// The same cache from another process. Nothing lives here yet: shared memory, Aeron, TCP and RDMA arrive with the
/// transports, as will the remote implementation of `KvCache`.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.gpu`. Aeron and Agrona are used nowhere
/// else.
@NullMarked
package io.kvcache.transport;

import org.jspecify.annotations.NullMarked;
