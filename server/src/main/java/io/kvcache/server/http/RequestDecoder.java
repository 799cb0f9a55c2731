package io.kvcache.server.http;

import io.kvcache.server.net.Connection;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.List;

/// Decodes requests, and has the connection know of each from its first byte on. Else a client that sends the head of a
/// request byte by byte, or stops in the middle of it, would be idle, and idle connections may stay for ever.
final class RequestDecoder extends HttpRequestDecoder {

    private final Connection connection;
    private boolean begun;

    RequestDecoder(HttpDecoderConfig config, Connection connection) {
        super(config);
        this.connection = connection;
    }

    @Override
    protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) throws Exception {
        // Line ends and blanks between requests are skipped, and begin none.
        if (!begun && in.forEachByte(each -> each <= ' ' && each >= 0) >= 0) {
            begun = true;
            connection.beginRequest();
        }
        super.decode(context, in, out);
        if (!out.isEmpty() && out.getLast() instanceof LastHttpContent) {
            begun = false;
        }
    }

    /// A request has been answered, and the connection goes on: the next may have begun before that.
    void onResponded() {
        if (begun) {
            connection.beginRequest();
        }
    }
}
