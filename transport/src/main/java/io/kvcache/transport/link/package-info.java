/// How frames travel: bytes become frames and frames become bytes, whatever carries them.
///
/// [io.kvcache.transport.link.FrameReader] is driven by bytes and says where the next ones go, so that payloads
/// land in their slots; [io.kvcache.transport.link.FrameSink] takes frames out;
/// [io.kvcache.transport.link.FrameConnection] is both, for the side that opens connections through a
/// [io.kvcache.transport.link.Connector]. Sockets are behind these, and so can be doubles that lose, delay and
/// reorder.
@NullMarked
package io.kvcache.transport.link;

import org.jspecify.annotations.NullMarked;
