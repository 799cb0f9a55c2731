/// The client's side: [io.kvcache.transport.client.RemoteKvCache], a `KvCache` that another process serves.
///
/// A session has one connection for many concurrent requests and for news, and some more for blocks. Each of those is
/// lent to one thread, which sends a request and reads the reply itself. When a session breaks, another one takes its
/// place, and everything that the old one held is lost.
@NullMarked
package io.kvcache.transport.client;

import org.jspecify.annotations.NullMarked;
