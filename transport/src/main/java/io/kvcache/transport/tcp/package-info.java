/// Sockets under the links: blocking channels, a platform thread for each connection that a server has.
///
/// Blocking, because a thread that waits in the kernel is woken once for a request, where a selector and
/// a virtual thread's poller wake twice; and what decides below 1 MiB is the number of wake-ups. Measured
/// on two cores: as fast as Netty's epoll at 1 MiB, two to three times as fast as virtual threads.
@NullMarked
package io.kvcache.transport.tcp;

import org.jspecify.annotations.NullMarked;
