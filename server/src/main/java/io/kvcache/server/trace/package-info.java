/// Records a trace of all accesses to a server, for the laboratory.
///
/// Requests leave a note and go on; other threads encode and write it. May not import protocols.
@NullMarked
package io.kvcache.server.trace;

import org.jspecify.annotations.NullMarked;
