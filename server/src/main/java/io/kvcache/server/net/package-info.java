/// Connections: how they are accepted, told apart by their first bytes, watched and closed.
///
/// A [io.kvcache.server.net.Listener] accepts; [io.kvcache.server.net.ConnectionRegistry] counts and watches what it
/// accepted; [io.kvcache.server.net.Listener.ProtocolDetector] hands each connection to a
/// [io.kvcache.server.net.Protocol].
///
/// May not import a protocol or the keyspace's own workings.
@NullMarked
package io.kvcache.server.net;

import org.jspecify.annotations.NullMarked;
