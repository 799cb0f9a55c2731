package io.kvcache.server.lm;

import io.kvcache.server.forward.ReplyFramer;
import io.netty.buffer.ByteBuf;

/// Finds the end of one reply of `lm://`.
///
/// Not safe for several threads.
final class LmReplyFramer implements ReplyFramer {

    private static final int LENGTH_OFFSET = 4;

    private int seen;
    private int length;

    @Override
    public boolean isEnd(ByteBuf part) {
        for (int i = 0; i < part.readableBytes() && seen + i < LENGTH_OFFSET + Integer.BYTES; i++) {
            int place = seen + i - LENGTH_OFFSET;
            if (place >= 0) {
                length |= (part.getByte(part.readerIndex() + i) & 0xFF) << (Byte.SIZE * place);
            }
        }
        seen += part.readableBytes();
        if (seen < LmCodec.REPLY_BYTES) {
            return false;
        }
        if (seen - LmCodec.REPLY_BYTES > length) {
            throw new IllegalStateException(seen - LmCodec.REPLY_BYTES + " bytes in a reply of " + length);
        }
        return seen - LmCodec.REPLY_BYTES == length;
    }
}
