/// The using side: [io.kvcache.transport.remote.RemoteKvCache], a `KvCache` that another process serves.
///
/// One connection carries many requests at a time and news; some others carry blocks, each lent to one
/// thread that asks and reads the answer itself. Everything that belongs to one session is an attachment;
/// when it breaks, another one takes its place, and what was held by the old one is over.
@NullMarked
package io.kvcache.transport.remote;

import org.jspecify.annotations.NullMarked;
