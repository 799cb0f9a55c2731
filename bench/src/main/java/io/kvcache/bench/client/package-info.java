/// A client of the server, for the command line: one connection, one request at a time, over Redis' protocol.
///
/// May not import the server or the store: it sees what any client sees.
@NullMarked
package io.kvcache.bench.client;

import org.jspecify.annotations.NullMarked;
