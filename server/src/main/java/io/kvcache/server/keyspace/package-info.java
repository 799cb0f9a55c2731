/// Named values over a store's objects: what every protocol front end stands on, and no protocol itself.
///
/// [io.kvcache.server.keyspace.Keyspace] adds to the store what it does not have: keys that can be listed, values
/// that expire, halves that live and go together, and a promise that what was just said to exist stays a moment.
///
/// May not import the network or a protocol.
@NullMarked
package io.kvcache.server.keyspace;

import org.jspecify.annotations.NullMarked;
