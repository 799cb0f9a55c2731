/// The using side: [io.kvcache.transport.client.RemoteKvCache], a `KvCache` that another process serves.
///
/// One connection carries many requests at a time and news; some others carry blocks, each lent to one thread that
/// asks and reads the answer itself. Everything that belongs to one session is an attachment; when it breaks,
/// another one takes its place, and what was held by the old one is over. Of several servers the first that is
/// there is used; a session that is left for one of them goes on until its last user has left.
@NullMarked
package io.kvcache.transport.client;

import org.jspecify.annotations.NullMarked;
