package io.kvcache.engines.chat;

import io.kvcache.engines.generator.GeneratorMetrics;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Serves `/v1/chat/completions` and `/v1/completions` as OpenAI's clients ask for them, in pieces as
/// well, over a generator with a store; `usage.prompt_tokens_details.cached_tokens` says what the store
/// gave. `/v1/models`, `/health`, `/stats` (what the generator counts) and `/metrics` for Prometheus are there
/// too.
///
/// It asks nobody who he is and encrypts nothing: it is made to try things on one's own machine.
///
/// **Ownership.** The generator stays the caller's.
///
/// **Threads.** One for all connections, one that generates.
public final class ChatServer implements AutoCloseable {

    private static final long QUIET_PERIOD_MILLIS = 0;
    private static final long STOP_SECONDS = 10;

    private final ChatRequestQueue queue;
    private final EventLoopGroup loop;
    private final ChannelGroup connections;
    private final Channel listener;

    private ChatServer(
            ChatRequestQueue chatRequestQueue, EventLoopGroup loop, ChannelGroup connections, Channel listener) {
        this.queue = chatRequestQueue;
        this.loop = loop;
        this.connections = connections;
        this.listener = listener;
    }

    /// Listens, and serves from now on.
    ///
    /// @param meters what `/metrics` has beside the server's and the generator's own, such as the store's
    /// @throws IOException when the address cannot be had
    public static ChatServer start(
            PrefixCachedGenerator<JlamaModel> generator, ChatOptions options, List<MeterBinder> meters)
            throws IOException {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        ChatRequestQueue chatRequestQueue = new ChatRequestQueue(generator, options, registry);
        new GeneratorMetrics(generator, options.model()).bindTo(registry);
        meters.forEach(each -> each.bindTo(registry));
        EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
        ChannelFuture bound = new ServerBootstrap()
                .group(loop)
                .channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        connections.add(channel);
                        channel.pipeline()
                                .addLast(new HttpServerCodec())
                                .addLast(new HttpObjectAggregator(options.maxBodyBytes()))
                                .addLast(new ChatHandler(chatRequestQueue));
                    }
                })
                .bind(options.address())
                .awaitUninterruptibly();
        ChatServer server = new ChatServer(chatRequestQueue, loop, connections, bound.channel());
        if (!bound.isSuccess()) {
            server.close();
            throw new IOException(
                    "cannot listen at " + options.address() + ": "
                            + bound.cause().getMessage(),
                    bound.cause());
        }
        return server;
    }

    /// Where it listens.
    public InetSocketAddress address() {
        return (InetSocketAddress) listener.localAddress();
    }

    /// Accepts nothing more, cuts off what is being answered, and ends its threads.
    @Override
    public void close() {
        listener.close().awaitUninterruptibly();
        connections.close().awaitUninterruptibly();
        queue.close();
        loop.shutdownGracefully(QUIET_PERIOD_MILLIS, STOP_SECONDS, TimeUnit.SECONDS)
                .awaitUninterruptibly();
    }
}
