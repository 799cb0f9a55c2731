package io.kvcache.server.http;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.http.HttpProtocol.HttpStats;
import io.kvcache.server.http.HttpRouter.HttpRequestLabel;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ProtocolSession;
import io.kvcache.server.net.SessionHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import org.jspecify.annotations.Nullable;

/// One client's requests in order, one reply each, none while the client does not read.
final class HttpSession implements ProtocolSession {

    private final ChannelHandlerContext context;
    private final SessionHandler handler;
    private final HttpRouter httpRouter;
    private final HttpAuthenticator httpAuthenticator;
    private final HttpStats stats;
    private final Connection connection;
    private final Runnable onNextRequest;
    private final HttpAuthenticator.ConnectionAuth connectionAuth = new HttpAuthenticator.ConnectionAuth();
    private @Nullable HttpRequestHandler httpRequestHandler;
    private @Nullable HttpRequest request;
    private @Nullable HttpResponder responder;
    private boolean ended;

    /// True while the client may be sending what the connection discards.
    private boolean lingering;

    /// @param mayBegin called after a reply, as the next request may have begun by then
    HttpSession(
            ChannelHandlerContext context,
            SessionHandler handler,
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
        this.context = context;
        this.handler = handler;
        connection.onAbort(this::abort);
    }

    @Override
    public boolean onInput(Object message) {
        if (message instanceof HttpRequest begun) {
            beginRequest(begun);
        }
        boolean whole = message instanceof LastHttpContent;
        if (message instanceof HttpRequest broken
                && broken.decoderResult().isFailure()
                && !whole
                && httpRequestHandler != null) {
            // The headers are none, or too long: no end of a body follows them.
            finishRequest(httpRequestHandler, true);
        } else if (message instanceof HttpContent part && httpRequestHandler != null) {
            httpRequestHandler.onBody(part.content());
            if (part instanceof LastHttpContent last) {
                finishRequest(httpRequestHandler, last.decoderResult().isFailure());
            }
        }
        return true;
    }

    /// The rest of a body did not come in time. Headers that are not complete are answered by nothing.
    private void abort(String why) {
        HttpRequestHandler incomplete = httpRequestHandler;
        if (incomplete != null && !handler.isSuspended() && !ended) {
            ended = true;
            new HttpResponder(context, HttpVersion.HTTP_1_1, false, stats, () -> {})
                    .sendProblem(new ProblemDetails(HttpResponseStatus.REQUEST_TIMEOUT, why));
            handler.linger();
            connection.closeAfterLingering(CloseReason.STALLED_REQUEST);
        } else {
            connection.closeAfterReplies(CloseReason.STALLED_REQUEST);
        }
    }

    private void beginRequest(HttpRequest begun) {
        connection.beginRequest();
        stats.requests.increment();
        request = begun;
        connection.labelRequest(HttpRequestLabel.of(begun));
        HttpRequestHandler forAnybody = httpRouter.findPublic(begun);
        if (forAnybody != null) {
            beginRequest(begun, forAnybody);
        } else if (connection.isOverLimit()) {
            ProblemDetails full = new ProblemDetails(
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "all connections are taken, as limits.connections says; only the health pages are answered");
            finishRequest(full.toHandler(), true);
        } else {
            authenticate(begun);
        }
    }

    /// Finds out which tenant sends a request; its body waits for that.
    private void authenticate(HttpRequest begun) {
        handler.<AuthResult>await(
                then -> httpAuthenticator.authenticate(
                        begun.headers(), context.channel().remoteAddress(), connectionAuth, then),
                authResult -> onAuthenticated(begun, authResult),
                _ -> {});
    }

    private void onAuthenticated(HttpRequest begun, AuthResult authResult) {
        if (ended) {
            return;
        }
        String tenant = authResult.tenant();
        if (tenant != null) {
            connection.markAuthenticated();
            connection.tenant(tenant);
        }
        beginRequest(begun, httpRouter.route(begun, authResult));
    }

    private void beginRequest(HttpRequest begun, HttpRequestHandler found) {
        httpRequestHandler = found;
        // The length of a request that cannot be read may be no number.
        if (!begun.decoderResult().isFailure() && found.rejectsBody(bodyLength(begun))) {
            finishRequest(found, true);
            return;
        }
        if (!HttpUtil.is100ContinueExpected(begun)) {
            return;
        }
        if (httpRequestHandler instanceof HttpRequestHandler.BodylessHandler refused) {
            finishRequest(refused, true); // The client waits for this before it sends a body.
        } else {
            context.writeAndFlush(
                    new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.CONTINUE),
                    context.voidPromise());
        }
    }

    private static long bodyLength(HttpRequest begun) {
        return HttpUtil.isTransferEncodingChunked(begun)
                ? HttpRequestHandler.UNKNOWN_LENGTH
                : HttpUtil.getContentLength(begun, 0L);
    }

    /// @param broken whether the connection ends, with the rest of the request unread
    private void finishRequest(HttpRequestHandler complete, boolean broken) {
        HttpRequest asked = request;
        boolean keepAlive = asked != null
                && HttpUtil.isKeepAlive(asked)
                && !asked.decoderResult().isFailure()
                && !broken
                && !connection.isOverLimit();
        lingering = broken;
        handler.suspend();
        HttpResponder out = new HttpResponder(
                context,
                asked == null ? HttpVersion.HTTP_1_1 : asked.protocolVersion(),
                keepAlive,
                stats,
                () -> handler.resume(() -> onResponded(complete)));
        responder = out;
        complete.respond(out);
        if (out.isStreaming()) {
            connection.labelRequest(""); // how long a client follows is no latency
        }
        connection.setServerWaiting(handler.isSuspended());
    }

    private void onResponded(HttpRequestHandler complete) {
        boolean ends = responder == null || responder.endsConnection();
        complete.close();
        httpRequestHandler = null;
        request = null;
        responder = null;
        boolean draining = connection.endRequest();
        if (draining || ends) {
            ended = true;
            CloseReason reason = draining ? CloseReason.DRAIN : CloseReason.QUIT;
            if (lingering) {
                handler.linger();
                connection.closeAfterLingering(reason);
            } else {
                connection.closeAfterReplies(reason);
            }
            return;
        }
        onNextRequest.run();
    }

    /// Returns whether the current request is a HEAD, whose replies have no body.
    boolean isHeadRequest() {
        return request != null && HttpMethod.HEAD.equals(request.method());
    }

    @Override
    public void onResponded() {
        // The responder reports the end of each reply.
    }

    @Override
    public boolean isEnded() {
        return ended;
    }

    @Override
    public void flush() {
        context.flush();
    }

    @Override
    public void close() {
        ended = true;
        if (httpRequestHandler != null) {
            httpRequestHandler.close();
            httpRequestHandler = null;
        }
    }
}
