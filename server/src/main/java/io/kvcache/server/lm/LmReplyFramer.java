package io.kvcache.server.lm;

import io.kvcache.server.forward.ReplyFramer;
import io.netty.buffer.ByteBuf;

/// Finds the end of one reply of `lm://`.
///
/// Not safe for several threads.
final class LmReplyFramer implements ReplyFramer {

    private static final int LENGTH_OFFSET = 4;

    private final int headerBytes;
    private int seen;
    private int length;

    LmReplyFramer(LmVersion version) {
        headerBytes = version.replyBytes();
    }

    @Override
    public boolean isEnd(ByteBuf part) {
        for (int i = 0; i < part.readableBytes() && seen + i < LENGTH_OFFSET + Integer.BYTES; i++) {
            int place = seen + i - LENGTH_OFFSET;
            if (place >= 0) {
                length |= (part.getByte(part.readerIndex() + i) & 0xFF) << (Byte.SIZE * place);
            }
        }
        seen += part.readableBytes();
        if (seen < headerBytes) {
            return false;
        }
        if (seen - headerBytes > length) {
            throw new IllegalStateException(seen - headerBytes + " bytes in a reply of " + length);
        }
        return seen - headerBytes == length;
    }
}
