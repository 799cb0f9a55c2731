package io.kvcache.server.lm;

import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.ReplyFramer;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmSession.LmRequest;
import io.kvcache.transport.cluster.HashSlots;
import io.netty.buffer.ByteBuf;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Passes requests about keys of other servers of the cluster on to those.
///
/// **Threads.** Any.
///
/// @param tenant whose clients say the requests
record LmForwarding(RequestForwarder forwarder, String tenant) {

    /// Returns whether another server has to run a request.
    boolean isElsewhere(LmRequest request) {
        return request.command() <= LmRequest.EXIST && forwarder.isElsewhere(HashSlots.of(request.key()));
    }

    /// Passes a request on.
    ///
    /// @param header the request as it came
    /// @param value of a PUT, retained; null for others
    /// @param reply takes the reply, on another thread; that of a PUT only says whether it ran
    void forward(LmRequest request, byte[] header, @Nullable ByteBuf value, Consumer<Reply> reply) {
        RequestBytes bytes = new RequestBytes().add(header);
        if (value != null) {
            bytes.add(value).add(health()); // as a PUT has no reply
        }
        int slot = HashSlots.of(request.key());
        forwarder.forward(new Request(tenant, Dialect.LM, slot, Kind.CONTENT, bytes.segments()), come -> {
            bytes.release();
            reply.accept(come);
        });
    }

    /// Returns a PUT of a value with its metadata, and a request for a reply.
    static RequestBytes put(byte[] key, PinnedValue value) {
        LmRequest put = new LmRequest(LmRequest.PUT, Math.toIntExact(value.bytes()), value.tensorMetadata(), key);
        return new RequestBytes().add(LmCodec.header(put)).add(value).add(health());
    }

    private static byte[] health() {
        return LmCodec.header(new LmRequest(LmRequest.HEALTH, 0, TensorMetadata.NONE, new byte[0]));
    }

    /// Finds the end of one reply of `lm://`.
    ///
    /// Not safe for several threads.
    static final class LmReplyFramer implements ReplyFramer {

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
}
