package io.kvcache.server.http;

import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpDecoderConfig;

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
}
