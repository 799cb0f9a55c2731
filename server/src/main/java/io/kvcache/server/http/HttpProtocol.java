package io.kvcache.server.http;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.http.HttpProtocol.HttpStats;
import io.kvcache.server.http.HttpRouter.HttpRequestLabel;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.ProtocolSession;
import io.kvcache.server.net.SessionHandler;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

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

    /// A request that breaks RFC 9112 in a way that Netty takes. The message is for the client.
    static final class MalformedRequestException extends Exception {

        private static final long serialVersionUID = 1;

        MalformedRequestException(String message) {
            super(message);
        }
    }

    /// Decodes requests, and has the connection know of each from its first byte on. Else a client that sends
    /// the head of a request byte by byte, or stops in the middle of it, would be idle, and idle connections
    /// may stay for ever.
    ///
    /// Refuses what another server on the way may read in another way: a request without Host or with several, and
    /// headers that go on in a further line.
    private static final class RequestDecoder extends HttpRequestDecoder {

        private static final List<String> SCHEMES = List.of("http://", "https://");

        private final Connection connection;
        private boolean begun;

        /// Whether the first line of a request was read, and its headers were not.
        private boolean inHeaders;

        private boolean folded;
        private boolean inBody;

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
            int from = in.readerIndex();
            super.decode(context, in, out);
            if (!inBody) {
                findFold(in, from);
            }
            if (!out.isEmpty() && out.getFirst() instanceof HttpRequest request) {
                check(request);
                inBody = true;
                inHeaders = false;
                folded = false;
            }
            if (!out.isEmpty() && out.getLast() instanceof LastHttpContent) {
                inBody = false;
                begun = false;
            }
        }

        /// Looks at the lines of a request's head that were read now; they are read whole.
        private void findFold(ByteBuf in, int from) {
            int to = in.readerIndex();
            for (int line = from; line < to; ) {
                byte first = in.getByte(line);
                folded |= inHeaders && (first == ' ' || first == '\t');
                int end = in.indexOf(line, to, (byte) '\n');
                inHeaders |= end > line + 1; // an empty line may come before the first
                line = end < 0 ? to : end + 1;
            }
        }

        private void check(HttpRequest request) {
            if (request.decoderResult().isFailure()) {
                return;
            }
            try {
                requireOneLineHeaders();
                requireHost(request);
                resolveTarget(request);
            } catch (MalformedRequestException malformed) {
                request.setDecoderResult(DecoderResult.failure(malformed));
            }
        }

        private void requireOneLineHeaders() throws MalformedRequestException {
            if (folded) {
                throw new MalformedRequestException("a header goes on in a further line; it takes one line");
            }
        }

        private static void requireHost(HttpRequest request) throws MalformedRequestException {
            int hosts = request.headers().getAll(HttpHeaderNames.HOST).size();
            if (hosts > 1) {
                throw new MalformedRequestException("there are several Hosts; a request takes one");
            }
            if (hosts == 0 && request.protocolVersion().isKeepAliveDefault()) {
                throw new MalformedRequestException("there is no Host; a request of HTTP/1.1 takes one");
            }
        }

        /// Clients of a proxy name the server in the target; then that is the Host.
        private static void resolveTarget(HttpRequest request) throws MalformedRequestException {
            String uri = request.uri();
            for (String scheme : SCHEMES) {
                if (uri.regionMatches(true, 0, scheme, 0, scheme.length())) {
                    int end = scheme.length();
                    while (end < uri.length() && "/?#".indexOf(uri.charAt(end)) < 0) {
                        end++;
                    }
                    String host = uri.substring(scheme.length(), end);
                    if (host.isEmpty() || host.indexOf('@') >= 0) {
                        throw new MalformedRequestException("the target names no host, or a user; it takes a path, or "
                                + scheme + "host:port and a path");
                    }
                    request.headers().set(HttpHeaderNames.HOST, host);
                    request.setUri(uri.startsWith("/", end) ? uri.substring(end) : "/" + uri.substring(end));
                    return;
                }
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

    /// One client's requests in order, one reply each, none while the client does not read.
    static final class HttpSession implements ProtocolSession {

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
}
