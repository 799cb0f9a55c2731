/// Clients of the server, for the command line: one connection with one request at a time over Redis' protocol, and
/// pages over HTTP.
///
/// Imports nothing else of the server, nor the store: it sees what any client sees.
@NullMarked
package io.kvcache.server.client;

import org.jspecify.annotations.NullMarked;
