package io.kvcache.server.http;

import io.kvcache.server.access.AuthResult;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connection;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Runs one connection: requests in order, one reply each, none while the client does not read.
final class HttpHandler extends ChannelInboundHandlerAdapter {

    private final Routes routes;
    private final Authorization authorization;
    private final HttpStats stats;
    private final Connection connection;
    private final Runnable mayBegin;
    private final Authorization.Past past = new Authorization.Past();
    private final Deque<Object> backlog = new ArrayDeque<>();
    private @Nullable Exchange exchange;
    private @Nullable HttpRequest request;
    private boolean answering;
    private boolean asking;
    private boolean pumping;
    private boolean ended;

    /// Whether the client may be sending a body for which the connection has no use any more.
    private boolean lingers;

    /// @param mayBegin called after a reply, as the next request may have begun by then
    HttpHandler(Routes routes, Authorization authorization, HttpStats stats, Connection connection, Runnable mayBegin) {
        this.mayBegin = mayBegin;
        this.routes = routes;
        this.authorization = authorization;
        this.stats = stats;
        this.connection = connection;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (ended) {
            ReferenceCountUtil.release(message);
            return;
        }
        backlog.add(message);
        pump(context);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
        pump(context);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        pump(context);
        context.fireChannelWritabilityChanged();
    }

    private void pump(ChannelHandlerContext context) {
        if (pumping) {
            return;
        }
        pumping = true;
        try {
            while (!paused(context)) {
                Object next = backlog.poll();
                if (next == null) {
                    break;
                }
                take(context, next);
                if (paused(context) || backlog.isEmpty()) {
                    context.flush();
                }
            }
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(ended ? lingers : !paused(context));
    }

    private boolean paused(ChannelHandlerContext context) {
        return ended || answering || asking || !context.channel().isWritable();
    }

    private void take(ChannelHandlerContext context, Object message) {
        try {
            if (message instanceof HttpRequest begun) {
                begin(context, begun);
            }
            boolean whole = message instanceof LastHttpContent;
            if (message instanceof HttpRequest broken
                    && broken.decoderResult().isFailure()
                    && !whole
                    && exchange != null) {
                end(context, exchange, true); // headers that are none, or too long: no end of a body follows them
            } else if (message instanceof HttpContent part && exchange != null) {
                exchange.body(part.content());
                if (part instanceof LastHttpContent last) {
                    end(context, exchange, last.decoderResult().isFailure());
                }
            }
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        connection.lastWords(why -> cut(context, why));
    }

    /// The rest of a body did not come in time. Headers that are not complete are answered by nothing.
    private void cut(ChannelHandlerContext context, String why) {
        Exchange incomplete = exchange;
        if (incomplete != null && !answering && !ended) {
            ended = true;
            new HttpReplies(context, false, stats, () -> {})
                    .problem(new Problem(HttpResponseStatus.REQUEST_TIMEOUT, why));
            context.flush();
        }
    }

    private void begin(ChannelHandlerContext context, HttpRequest begun) {
        connection.requestBegins();
        stats.requests.increment();
        request = begun;
        connection.requestIs(Verbs.of(begun));
        Exchange forAnybody = routes.forAnybody(begun);
        if (forAnybody != null) {
            begin(context, begun, forAnybody);
        } else if (connection.isSpare()) {
            Problem full = new Problem(
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "all connections are taken, as limits.connections says; only the health pages are answered");
            end(context, full.exchange(), true);
        } else {
            identify(context, begun);
        }
    }

    /// Finds out who sends a request; its body waits for that.
    private void identify(ChannelHandlerContext context, HttpRequest begun) {
        asking = true;
        connection.waiting(true);
        authorization.of(begun.headers(), context.channel().remoteAddress(), past, who -> {
            if (context.channel().eventLoop().inEventLoop()) {
                identified(context, begun, who);
            } else {
                context.channel().eventLoop().execute(() -> identified(context, begun, who));
            }
        });
    }

    private void identified(ChannelHandlerContext context, HttpRequest begun, AuthResult who) {
        asking = false;
        connection.waiting(false);
        if (ended) {
            return;
        }
        if (who.tenant() != null) {
            connection.known();
        }
        begin(context, begun, routes.find(begun, who));
        pump(context);
    }

    private void begin(ChannelHandlerContext context, HttpRequest begun, Exchange found) {
        exchange = found;
        // The length of a request that cannot be read may be no number.
        if (!begun.decoderResult().isFailure() && found.refuses(HttpUtil.getContentLength(begun, 0L))) {
            lingers = !HttpUtil.is100ContinueExpected(begun);
            end(context, found, true);
            return;
        }
        if (!HttpUtil.is100ContinueExpected(begun)) {
            return;
        }
        if (exchange instanceof Exchange.Plain refused) {
            end(context, refused, true); // The client waits for this before it sends a body.
        } else {
            context.writeAndFlush(
                    new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.CONTINUE),
                    context.voidPromise());
        }
    }

    private void end(ChannelHandlerContext context, Exchange complete, boolean broken) {
        HttpRequest asked = request;
        boolean keepAlive = asked != null
                && HttpUtil.isKeepAlive(asked)
                && !asked.decoderResult().isFailure()
                && !broken
                && !connection.isSpare();
        answering = true;
        HttpReplies out = new HttpReplies(context, keepAlive, stats, () -> answered(context, complete, keepAlive));
        complete.answer(out);
        if (out.streams()) {
            connection.requestIs(""); // how long a client follows is no latency
        }
        connection.waiting(answering);
    }

    private void answered(ChannelHandlerContext context, Exchange complete, boolean keepAlive) {
        answering = false;
        complete.close();
        exchange = null;
        request = null;
        connection.waiting(false);
        boolean draining = connection.requestEnds();
        if (draining || !keepAlive) {
            ended = true;
            CloseReason reason = draining ? CloseReason.DRAIN : CloseReason.QUIT;
            if (lingers) {
                connection.closeAfterLingering(reason);
            } else {
                connection.closeAfterReplies(reason);
            }
            return;
        }
        mayBegin.run();
        if (!pumping) {
            context.flush();
            pump(context);
        }
    }

    /// Whether the request that is being answered is a HEAD, whose replies have no body.
    boolean answersHead() {
        return request != null && HttpMethod.HEAD.equals(request.method());
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        close();
        context.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        close();
    }

    private void close() {
        ended = true;
        backlog.forEach(ReferenceCountUtil::release);
        backlog.clear();
        if (exchange != null) {
            exchange.close();
            exchange = null;
        }
    }
}
