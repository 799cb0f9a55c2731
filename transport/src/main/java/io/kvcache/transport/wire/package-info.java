/// Wire format, byte by byte: frames, bodies, and codes. PROTOCOL.md at the top of the repository describes it in
/// words.
///
/// Everything is little-endian but keys, which keep the order of their digests. A body may be longer than
/// its reader knows: the rest is ignored. Nothing here opens a socket or keeps state of a connection.
@NullMarked
package io.kvcache.transport.wire;

import org.jspecify.annotations.NullMarked;
