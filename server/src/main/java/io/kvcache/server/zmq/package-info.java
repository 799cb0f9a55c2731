/// Events over ZeroMQ as vLLM publishes them, for routers that follow engines that way.
///
/// [io.kvcache.server.zmq.ZmqPublisher] is the whole of it to others.
///
/// May not import a protocol or the keyspace.
@NullMarked
package io.kvcache.server.zmq;

import org.jspecify.annotations.NullMarked;
