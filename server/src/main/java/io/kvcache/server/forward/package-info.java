/// Passes requests of clients that know one server on to the server of the cluster that owns their keys.
///
/// [io.kvcache.server.forward.RequestForwarder] is the side of the server that a client has asked: it finds the
/// owner, sends it the request's bytes by EXECUTE of PROTOCOL.md, and gives the reply's bytes back.
/// [io.kvcache.server.forward.InProcessCommands] is the owner's side: it runs the bytes as those of a client of
/// its own, over a channel that no network is under.
///
/// Knows no protocol. May not import a front end.
@NullMarked
package io.kvcache.server.forward;

import org.jspecify.annotations.NullMarked;
