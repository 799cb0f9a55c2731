package io.kvcache.server.http;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.ProtocolKind;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpServerCodec;
import java.util.Map;

/// The HTTP front end.
public final class HttpProtocol implements Protocol {

    /// Keys of 4 KiB are 12 KiB when every byte is encoded.
    private static final int LONGEST_LINE = 16 << 10;

    private final Keyspace keyspace;
    private final Map<String, Page> pages;
    private final boolean anyHost;
    private final HttpStats stats = new HttpStats();

    /// @param pages by path
    /// @param anyHost whether clients may call the server by a name other than localhost
    public HttpProtocol(Keyspace keyspace, Map<String, Page> pages, boolean anyHost) {
        this.keyspace = keyspace;
        this.pages = Map.copyOf(pages);
        this.anyHost = anyHost;
    }

    @Override
    public ProtocolKind kind() {
        return ProtocolKind.HTTP;
    }

    @Override
    public void install(ChannelPipeline pipeline, Connection connection) {
        pipeline.addLast(new HttpServerCodec(new HttpDecoderConfig().setMaxInitialLineLength(LONGEST_LINE)));
        pipeline.addLast(new HttpHandler(new Routes(keyspace, pages, anyHost), stats, connection));
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
