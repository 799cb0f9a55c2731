package io.kvcache.server.http;

import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;

/// The HTTP front end.
public final class HttpProtocol implements Protocol {

    /// Keys of 4 KiB are 12 KiB when every byte is encoded.
    static final int MAX_LINE = 16 << 10;

    private final HttpRouter httpRouter;
    private final HttpAuthenticator httpAuthenticator;
    private final HttpStats stats = new HttpStats();

    public HttpProtocol(HttpConfig site) {
        httpRouter = new HttpRouter(site);
        httpAuthenticator = new HttpAuthenticator(site.listenerAuth());
    }

    @Override
    public ProtocolKind kind() {
        return ProtocolKind.HTTP;
    }

    @Override
    public void install(ChannelPipeline pipeline, Connection connection) {
        HttpDecoderConfig config = new HttpDecoderConfig().setMaxInitialLineLength(MAX_LINE);
        RequestDecoder decoder = new RequestDecoder(config, connection);
        pipeline.addLast(decoder, new SessionHandler(connection, (context, handler) -> {
            HttpSession session = new HttpSession(
                    context, handler, httpRouter, httpAuthenticator, stats, connection, decoder::onResponded);
            pipeline.addBefore(context.name(), null, new ResponseEncoder(session::isHeadRequest));
            return session;
        }));
    }

    /// Requests so far.
    public long requestCount() {
        return stats.requests.sum();
    }

    /// Requests that were answered by an error.
    public long problemCount() {
        return stats.problems.sum();
    }

    /// The counters of all HTTP connections together.
    static final class HttpStats {

        final LongAdder requests = new LongAdder();
        final LongAdder problems = new LongAdder();
    }

    /// Decodes requests, and has the connection know of each from its first byte on. Else a client that sends
    /// the head of a request byte by byte, or stops in the middle of it, would be idle, and idle connections
    /// may stay for ever.
    private static final class RequestDecoder extends HttpRequestDecoder {

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

    /// Encodes replies; drops the body of a reply to HEAD.
    private static final class ResponseEncoder extends HttpResponseEncoder {

        private final BooleanSupplier headRequest;

        /// @param head whether the request that is being answered is a HEAD
        ResponseEncoder(BooleanSupplier head) {
            this.headRequest = head;
        }

        @Override
        protected boolean isContentAlwaysEmpty(HttpResponse reply) {
            return headRequest.getAsBoolean() || super.isContentAlwaysEmpty(reply);
        }
    }
}
