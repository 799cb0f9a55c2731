package io.kvcache.server.http;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.net.Connection.CloseReason;
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
final class HttpConnectionHandler extends ChannelInboundHandlerAdapter {

    private final HttpRouter httpRouter;
    private final HttpAuthenticator httpAuthenticator;
    private final HttpStats stats;
    private final Connection connection;
    private final Runnable onNextRequest;
    private final HttpAuthenticator.ConnectionAuth connectionAuth = new HttpAuthenticator.ConnectionAuth();
    private final Deque<Object> backlog = new ArrayDeque<>();
    private @Nullable HttpRequestHandler httpRequestHandler;
    private @Nullable HttpRequest request;
    private boolean responding;
    private boolean authenticating;
    private boolean pumping;
    private boolean ended;

    /// Whether the client may be sending a body for which the connection has no use any more.
    private boolean lingering;

    /// @param mayBegin called after a reply, as the next request may have begun by then
    HttpConnectionHandler(
            HttpRouter httpRouter,
            HttpAuthenticator httpAuthenticator,
            HttpStats stats,
            Connection connection,
            Runnable mayBegin) {
        this.onNextRequest = mayBegin;
        this.httpRouter = httpRouter;
        this.httpAuthenticator = httpAuthenticator;
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
            while (!isPaused(context)) {
                Object next = backlog.poll();
                if (next == null) {
                    break;
                }
                onMessage(context, next);
                if (isPaused(context) || backlog.isEmpty()) {
                    context.flush();
                }
            }
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(ended ? lingering : !isPaused(context));
    }

    private boolean isPaused(ChannelHandlerContext context) {
        return ended || responding || authenticating || !context.channel().isWritable();
    }

    private void onMessage(ChannelHandlerContext context, Object message) {
        try {
            if (message instanceof HttpRequest begun) {
                beginRequest(context, begun);
            }
            boolean whole = message instanceof LastHttpContent;
            if (message instanceof HttpRequest broken
                    && broken.decoderResult().isFailure()
                    && !whole
                    && httpRequestHandler != null) {
                finishRequest(
                        context,
                        httpRequestHandler,
                        true); // headers that are none, or too long: no end of a body follows them
            } else if (message instanceof HttpContent part && httpRequestHandler != null) {
                httpRequestHandler.onBody(part.content());
                if (part instanceof LastHttpContent last) {
                    finishRequest(
                            context, httpRequestHandler, last.decoderResult().isFailure());
                }
            }
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        connection.onAbort(why -> abort(context, why));
    }

    /// The rest of a body did not come in time. Headers that are not complete are answered by nothing.
    private void abort(ChannelHandlerContext context, String why) {
        HttpRequestHandler incomplete = httpRequestHandler;
        if (incomplete != null && !responding && !ended) {
            ended = true;
            new HttpResponder(context, false, stats, () -> {})
                    .sendProblem(new ProblemDetails(HttpResponseStatus.REQUEST_TIMEOUT, why));
            context.flush();
        }
    }

    private void beginRequest(ChannelHandlerContext context, HttpRequest begun) {
        connection.beginRequest();
        stats.requests.increment();
        request = begun;
        connection.labelRequest(HttpRequestLabel.of(begun));
        HttpRequestHandler forAnybody = httpRouter.findPublic(begun);
        if (forAnybody != null) {
            beginRequest(context, begun, forAnybody);
        } else if (connection.isOverLimit()) {
            ProblemDetails full = new ProblemDetails(
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "all connections are taken, as limits.connections says; only the health pages are answered");
            finishRequest(context, full.toHandler(), true);
        } else {
            authenticate(context, begun);
        }
    }

    /// Finds out who sends a request; its body waits for that.
    private void authenticate(ChannelHandlerContext context, HttpRequest begun) {
        authenticating = true;
        connection.setServerWaiting(true);
        httpAuthenticator.authenticate(begun.headers(), context.channel().remoteAddress(), connectionAuth, who -> {
            if (context.channel().eventLoop().inEventLoop()) {
                onAuthenticated(context, begun, who);
            } else {
                context.channel().eventLoop().execute(() -> onAuthenticated(context, begun, who));
            }
        });
    }

    private void onAuthenticated(ChannelHandlerContext context, HttpRequest begun, AuthResult who) {
        authenticating = false;
        connection.setServerWaiting(false);
        if (ended) {
            return;
        }
        if (who.tenant() != null) {
            connection.markAuthenticated();
        }
        beginRequest(context, begun, httpRouter.route(begun, who));
        pump(context);
    }

    private void beginRequest(ChannelHandlerContext context, HttpRequest begun, HttpRequestHandler found) {
        httpRequestHandler = found;
        // The length of a request that cannot be read may be no number.
        if (!begun.decoderResult().isFailure() && found.rejectsBody(HttpUtil.getContentLength(begun, 0L))) {
            lingering = !HttpUtil.is100ContinueExpected(begun);
            finishRequest(context, found, true);
            return;
        }
        if (!HttpUtil.is100ContinueExpected(begun)) {
            return;
        }
        if (httpRequestHandler instanceof HttpRequestHandler.BodylessHandler refused) {
            finishRequest(context, refused, true); // The client waits for this before it sends a body.
        } else {
            context.writeAndFlush(
                    new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.CONTINUE),
                    context.voidPromise());
        }
    }

    private void finishRequest(ChannelHandlerContext context, HttpRequestHandler complete, boolean broken) {
        HttpRequest asked = request;
        boolean keepAlive = asked != null
                && HttpUtil.isKeepAlive(asked)
                && !asked.decoderResult().isFailure()
                && !broken
                && !connection.isOverLimit();
        responding = true;
        HttpResponder out =
                new HttpResponder(context, keepAlive, stats, () -> onResponded(context, complete, keepAlive));
        complete.respond(out);
        if (out.isStreaming()) {
            connection.labelRequest(""); // how long a client follows is no latency
        }
        connection.setServerWaiting(responding);
    }

    private void onResponded(ChannelHandlerContext context, HttpRequestHandler complete, boolean keepAlive) {
        responding = false;
        complete.close();
        httpRequestHandler = null;
        request = null;
        connection.setServerWaiting(false);
        boolean draining = connection.endRequest();
        if (draining || !keepAlive) {
            ended = true;
            CloseReason reason = draining ? CloseReason.DRAIN : CloseReason.QUIT;
            if (lingering) {
                connection.closeAfterLingering(reason);
            } else {
                connection.closeAfterReplies(reason);
            }
            return;
        }
        onNextRequest.run();
        if (!pumping) {
            context.flush();
            pump(context);
        }
    }

    /// Whether the request that is being answered is a HEAD, whose replies have no body.
    boolean isHeadRequest() {
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
        if (httpRequestHandler != null) {
            httpRequestHandler.close();
            httpRequestHandler = null;
        }
    }
}
