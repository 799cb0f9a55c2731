/// Clients of the server, for the command line: one connection with one request at a time over Redis' protocol, and
/// pages over HTTP.
///
/// May not import the server or the store: it sees what any client sees.
@NullMarked
package io.kvcache.bench.client;

import org.jspecify.annotations.NullMarked;
