package io.kvcache.engines.chat;

import io.kvcache.engines.generator.GeneratorMetrics;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.TextModel;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Serves `/v1/chat/completions` and `/v1/completions` as OpenAI's clients ask for them, in pieces as
/// well, over a generator with a store; `usage.prompt_tokens_details.cached_tokens` says what the store
/// gave. `/v1/models`, `/health`, `/stats` (what the generator counts) and `/metrics` for Prometheus are there
/// too.
///
/// It has no authentication and no encryption: it is made to try things on one's own machine.
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
            PrefixCachedGenerator<? extends TextModel> generator, ChatOptions options, List<MeterBinder> meters)
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

    /// Returns the address that it listens at.
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

    /// One connection: which path is asked for, one request after the other.
    ///
    /// **Threads.** The connection's loop.
    private static final class ChatHandler extends SimpleChannelInboundHandler<FullHttpRequest> {

        private static final Logger LOG = System.getLogger(ChatHandler.class.getName());

        /// Requests that a client may send before the answer to the one before them.
        private static final int MAX_PIPELINED = 16;

        private final ChatRequestQueue queue;
        private final Deque<FullHttpRequest> pipelined = new ArrayDeque<>();
        private boolean busy;

        ChatHandler(ChatRequestQueue chatRequestQueue) {
            this.queue = chatRequestQueue;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            if (!busy) {
                answer(context, request);
            } else if (pipelined.size() < MAX_PIPELINED) {
                pipelined.add(request.retain());
            } else {
                context.close();
            }
        }

        private void answer(ChannelHandlerContext context, FullHttpRequest request) {
            busy = true;
            SseResponder responder = new SseResponder(
                    context.channel(),
                    HttpUtil.isKeepAlive(request),
                    () -> context.executor().execute(() -> answerNext(context)));
            String path = new QueryStringDecoder(request.uri()).path();
            switch (path) {
                case "/v1/chat/completions" -> submit(request, responder, true);
                case "/v1/completions" -> submit(request, responder, false);
                case "/v1/models" -> responder.send(200, queue.models());
                case "/health" -> responder.send(200, "{\"status\":\"ok\"}");
                case "/stats" -> responder.send(200, queue.stats());
                case "/metrics" -> responder.sendMetrics(queue.metrics());
                default ->
                    responder.send(
                            404,
                            CompletionResponses.error(
                                    "invalid_request_error", "unknown_url", "", "there is no " + path + " here"));
            }
        }

        private void submit(FullHttpRequest request, SseResponder responder, boolean chat) {
            if (request.method().equals(HttpMethod.POST)) {
                queue.submit(chat, ByteBufUtil.getBytes(request.content()), responder);
            } else {
                responder.send(
                        405,
                        CompletionResponses.error(
                                "invalid_request_error", "method_not_allowed", "", "only POST goes there"));
            }
        }

        private void answerNext(ChannelHandlerContext context) {
            busy = false;
            FullHttpRequest request = pipelined.poll();
            if (request != null) {
                try {
                    answer(context, request);
                } finally {
                    request.release();
                }
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            pipelined.forEach(FullHttpRequest::release);
            pipelined.clear();
            context.fireChannelInactive();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            if (!(cause instanceof IOException)) {
                LOG.log(Level.WARNING, "a connection is closed", cause);
            }
            context.close();
        }
    }
}
