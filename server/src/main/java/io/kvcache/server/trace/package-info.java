/// What a server is used for: a trace of it all for the laboratory.
///
/// Requests leave a note and go on; what is made of it is made on other threads. May not import
/// protocols.
@NullMarked
package io.kvcache.server.trace;

import org.jspecify.annotations.NullMarked;
