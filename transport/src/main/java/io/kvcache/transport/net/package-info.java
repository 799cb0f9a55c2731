/// How frames travel: bytes become frames and frames become bytes, whatever carries them.
///
/// [io.kvcache.transport.net.FrameReader] is driven by bytes and says where the next ones go, so that payloads
/// land in their slots; [io.kvcache.transport.net.FrameSink] takes frames out;
/// [io.kvcache.transport.net.FrameConnection] is both, for the side that opens connections through a
/// [io.kvcache.transport.net.Connector]. Sockets are behind these, and so can be doubles that lose, delay and
/// reorder.
@NullMarked
package io.kvcache.transport.net;

import org.jspecify.annotations.NullMarked;
