/// Frames and the connections that carry them: bytes become frames and frames become bytes.
///
/// - [io.kvcache.transport.net.FrameReader] takes bytes and says where the next ones go, so payloads arrive in
///   their slots.
/// - [io.kvcache.transport.net.FrameSink] sends frames.
/// - [io.kvcache.transport.net.FrameConnection] does both, for the side that connects by a
///   [io.kvcache.transport.net.Connector]. Tests put doubles in its place that lose, delay and reorder bytes.
/// - [io.kvcache.transport.net.TcpConnection] is a blocking channel. A server has a platform thread for each.
/// - [io.kvcache.transport.net.FabricReader] reads slots of another process without frames.
/// - [io.kvcache.transport.net.PemFiles] reads certificates and keys, for all that speaks TLS here and elsewhere.
///
/// Channels block, because a thread that waits in the kernel is woken once for a request. A selector, or the poller
/// of virtual threads, wakes twice, and the number of wake-ups decides below 1 MiB. Measured on two cores: as fast
/// as Netty's epoll at 1 MiB, two to three times as fast as virtual threads.
@NullMarked
package io.kvcache.transport.net;

import org.jspecify.annotations.NullMarked;
