package io.kvcache.server.http;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpProtocol.HttpStats;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.net.SlotIo;
import io.kvcache.server.quota.PartRead;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Writes one reply to one request.
///
/// **Threads.** The connection's loop.
public final class HttpResponder {

    static final String CHALLENGE = "Basic realm=\"kvcache\", charset=\"UTF-8\"";

    private final ChannelHandlerContext context;
    private final HttpVersion version;
    private final boolean keepAlive;
    private final HttpStats stats;
    private final Runnable done;
    private boolean streams;

    /// @param version that the client speaks
    /// @param keepAlive whether another request may follow
    /// @param done run when the reply is written
    HttpResponder(
            ChannelHandlerContext context, HttpVersion version, boolean keepAlive, HttpStats stats, Runnable done) {
        this.context = context;
        this.version = version;
        this.keepAlive = keepAlive;
        this.stats = stats;
        this.done = done;
    }

    /// Answers by a status alone.
    public void sendEmpty(HttpResponseStatus status) {
        sendText(status, "", "", true, _ -> {});
    }

    /// Answers by a line of JSON.
    public void sendJson(HttpResponseStatus status, Object value) {
        sendText(status, HttpHeaderValues.APPLICATION_JSON.toString(), Json.text(value), true, _ -> {});
    }

    /// Answers by bytes, or for HEAD by their headers alone.
    public void sendBytes(HttpResponseStatus status, byte[] body, boolean withBody, Consumer<HttpHeaders> headers) {
        FullHttpResponse reply = new DefaultFullHttpResponse(
                HttpVersion.HTTP_1_1, status, withBody ? Unpooled.wrappedBuffer(body) : Unpooled.EMPTY_BUFFER);
        headers.accept(reply.headers());
        if (status.code() != HttpResponseStatus.NOT_MODIFIED.code()) {
            reply.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.length);
        }
        finish(reply);
    }

    void sendPage(TextEndpoint textEndpoint, boolean withBody) {
        HttpResponseStatus status =
                textEndpoint.healthy().get() ? HttpResponseStatus.OK : HttpResponseStatus.SERVICE_UNAVAILABLE;
        sendText(status, textEndpoint.contentType(), textEndpoint.body().get(), withBody, _ -> {});
    }

    /// Answers by a problem.
    public void sendProblem(ProblemDetails problemDetails) {
        sendProblem(problemDetails, "");
    }

    private void sendProblem(ProblemDetails problemDetails, String allowed) {
        stats.problems.increment();
        sendText(problemDetails.status(), ProblemDetails.CONTENT_TYPE, problemDetails.toJson(), true, headers -> {
            if (problemDetails.retryAfterSeconds() > 0) {
                headers.set(HttpHeaderNames.RETRY_AFTER, problemDetails.retryAfterSeconds());
            }
            if (!allowed.isEmpty()) {
                headers.set(HttpHeaderNames.ALLOW, allowed);
            }
        });
    }

    /// Returns the handler of a request for a text page.
    public static HttpRequestHandler pageHandler(HttpRequest request, TextEndpoint page) {
        boolean get = request.method().equals(HttpMethod.GET);
        return get || request.method().equals(HttpMethod.HEAD)
                ? (HttpRequestHandler.BodylessHandler) out -> out.sendPage(page, get)
                : methodNotAllowed(request, "GET, HEAD");
    }

    /// As [#pageHandler], for a page that takes long to make: it is made on a thread of its own, so that the loop goes
    /// on with the other connections.
    public static HttpRequestHandler slowPageHandler(HttpRequest request, TextEndpoint page) {
        boolean get = request.method().equals(HttpMethod.GET);
        return get || request.method().equals(HttpMethod.HEAD)
                ? (HttpRequestHandler.BodylessHandler) out -> Thread.ofVirtual().start(() -> out.makePage(page, get))
                : methodNotAllowed(request, "GET, HEAD");
    }

    private void makePage(TextEndpoint page, boolean withBody) {
        try {
            String text = page.body().get();
            sendLater(() -> sendText(HttpResponseStatus.OK, page.contentType(), text, withBody, _ -> {}), () -> {});
        } catch (RuntimeException | Error bug) {
            context.pipeline().fireExceptionCaught(bug);
        }
    }

    /// Returns the handler of a request with a method that its path does not take.
    ///
    /// @param allowed the methods, with commas
    public static HttpRequestHandler methodNotAllowed(HttpRequest request, String allowed) {
        ProblemDetails problemDetails = new ProblemDetails(
                HttpResponseStatus.METHOD_NOT_ALLOWED, request.method() + " is not allowed here; it takes " + allowed);
        return (HttpRequestHandler.BodylessHandler) out -> out.sendProblem(problemDetails, allowed);
    }

    /// Answers that no byte of a value is in the range that was asked for.
    void sendUnsatisfiable(long bytes) {
        stats.problems.increment();
        HttpResponseStatus status = HttpResponseStatus.REQUESTED_RANGE_NOT_SATISFIABLE;
        FullHttpResponse reply = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status);
        reply.headers().set(HttpHeaderNames.CONTENT_RANGE, "bytes */" + bytes).set(HttpHeaderNames.CONTENT_LENGTH, 0);
        finish(reply);
    }

    private void sendText(
            HttpResponseStatus status, String type, String text, boolean withBody, Consumer<HttpHeaders> more) {
        ByteBuf body = ByteBufUtil.writeUtf8(context.alloc(), text);
        int bytes = body.readableBytes();
        FullHttpResponse reply =
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, withBody ? body : body.clear());
        HttpHeaders headers = reply.headers();
        if (!type.isEmpty()) {
            headers.set(HttpHeaderNames.CONTENT_TYPE, type);
        }
        if (status.code() == HttpResponseStatus.UNAUTHORIZED.code()) {
            headers.set(HttpHeaderNames.WWW_AUTHENTICATE, CHALLENGE);
        }
        more.accept(headers);
        if (status.code() != HttpResponseStatus.NO_CONTENT.code()) {
            headers.set(HttpHeaderNames.CONTENT_LENGTH, bytes);
        }
        finish(reply);
    }

    /// A client of HTTP/1.0 takes the connection's end for the reply's, unless it is told otherwise.
    private void setConnection(HttpResponse reply) {
        if (endsConnection()) {
            reply.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
        } else if (!version.isKeepAliveDefault()) {
            reply.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
        }
    }

    /// Returns whether no other request may follow. HTTP/1.0 has no chunks, so there a reply of no known length ends
    /// with
    /// the connection.
    boolean endsConnection() {
        return !keepAlive || (streams && !version.isKeepAliveDefault());
    }

    private void finish(FullHttpResponse reply) {
        setConnection(reply);
        context.write(reply, context.voidPromise());
        done.run();
    }

    /// Answers by bytes of the store, or by the range of them that was asked for. Takes them over.
    ///
    /// @param range the request's `PinnedRange`, if it has one
    /// @param withBody false for HEAD
    /// @param moreHeaders adds headers of the caller's own
    void sendPinned(PinnedBytes held, @Nullable String range, boolean withBody, Consumer<HttpHeaders> moreHeaders) {
        RangeHeader cut = RangeHeader.of(range, held.bytes());
        if (!cut.isSatisfiable()) {
            held.release().run();
            sendUnsatisfiable(held.bytes());
            return;
        }
        HttpResponse reply = new DefaultHttpResponse(
                HttpVersion.HTTP_1_1, cut.isWhole() ? HttpResponseStatus.OK : HttpResponseStatus.PARTIAL_CONTENT);
        HttpHeaders headers = setValueHeaders(reply.headers()).set(HttpHeaderNames.CONTENT_LENGTH, cut.length());
        if (!cut.isWhole()) {
            setContentRange(headers, cut.from(), cut.length(), held.bytes());
        }
        moreHeaders.accept(headers);
        setConnection(reply);
        context.write(reply, context.voidPromise());
        if (withBody) {
            SlotIo.write(
                    context,
                    cut.length(),
                    each -> held.segments().visit(cut.from(), cut.length(), each),
                    held.release());
        } else {
            held.release().run();
        }
        context.write(LastHttpContent.EMPTY_LAST_CONTENT, context.voidPromise());
        done.run();
    }

    /// Answers as another server has.
    ///
    /// @param headers its own; what they say of its connection does not count
    void sendReply(HttpResponseStatus status, HttpHeaders headers, PinnedBytes body) {
        if (status.code() >= HttpResponseStatus.BAD_REQUEST.code()) {
            stats.problems.increment();
        }
        HttpResponse reply = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
        reply.headers().set(headers).remove(HttpHeaderNames.CONNECTION);
        setConnection(reply);
        context.write(reply, context.voidPromise());
        SlotIo.write(context, body.bytes(), each -> body.segments().visit(0, body.bytes(), each), body.release());
        context.write(LastHttpContent.EMPTY_LAST_CONTENT, context.voidPromise());
        done.run();
    }

    /// Answers by a part of a value.
    ///
    /// @param part its bytes, which this keeps
    /// @param allBytes of the value
    /// @param moreHeaders adds headers of the caller's own
    void sendPart(byte[] part, long from, long allBytes, Consumer<HttpHeaders> moreHeaders) {
        sendBytes(
                HttpResponseStatus.PARTIAL_CONTENT,
                part,
                true,
                headers -> moreHeaders.accept(setContentRange(setValueHeaders(headers), from, part.length, allBytes)));
    }

    /// Answers that the client has the value already.
    void sendNotModified(String etag) {
        sendBytes(
                HttpResponseStatus.NOT_MODIFIED,
                new byte[0],
                false,
                headers -> headers.set(HttpHeaderNames.ETAG, etag));
    }

    private static HttpHeaders setValueHeaders(HttpHeaders headers) {
        return headers.set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.APPLICATION_OCTET_STREAM)
                .set(HttpHeaderNames.ACCEPT_RANGES, HttpHeaderValues.BYTES);
    }

    private static HttpHeaders setContentRange(HttpHeaders headers, long from, long length, long allBytes) {
        return headers.set(HttpHeaderNames.CONTENT_RANGE, "bytes " + from + "-" + (from + length - 1) + "/" + allBytes);
    }

    /// Returns whether the reply has no known length.
    boolean isStreaming() {
        return streams;
    }

    /// Begins a reply of no known length.
    public HttpStream openStream(String contentType) {
        streams = true;
        HttpResponse reply = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        reply.headers()
                .set(HttpHeaderNames.CONTENT_TYPE, contentType)
                .set(HttpHeaderNames.CACHE_CONTROL, HttpHeaderValues.NO_CACHE);
        if (version.isKeepAliveDefault()) {
            reply.headers().set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
        }
        setConnection(reply);
        context.write(reply, context.voidPromise());
        return new HttpStream(context, done);
    }

    /// Replies later. May be called on any thread.
    ///
    /// @param reply run on the connection's loop
    /// @param giveUp run instead if the connection is gone
    public void sendLater(Runnable reply, Runnable giveUp) {
        try {
            context.channel().eventLoop().execute(() -> {
                if (context.channel().isActive()) {
                    reply.run();
                } else {
                    giveUp.run();
                }
            });
        } catch (RejectedExecutionException ended) {
            giveUp.run();
        }
    }

    /// Goes on with a reply when the other connections of the loop have had their turn, unless this one has ended by
    /// then. As [io.kvcache.server.net.SessionHandler#yieldLoop].
    void yieldLoop(Runnable next) {
        var _ = context.channel()
                .eventLoop()
                .schedule(
                        () -> {
                            if (context.channel().isActive()) {
                                next.run();
                            }
                        },
                        0,
                        TimeUnit.NANOSECONDS);
    }

    /// Replies once a part has come from disk, or is known not to come in time; not at all when the
    /// connection has ended by then.
    ///
    /// @param reply gets whether it is there
    void awaitPart(PartRead part, Consumer<Boolean> reply) {
        part.there().thenAccept(there -> sendLater(() -> reply.accept(there), () -> {}));
    }

    /// Replies with a value once it has come from disk, or with none when it has not come in time; not at all when
    /// the connection has ended by then.
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> reply) {
        keyspace.fetch(key, context.channel().eventLoop(), readResult -> {
            PinnedValue value = readResult.value();
            if (context.channel().isActive()) {
                reply.accept(readResult);
            } else if (value != null) {
                value.close();
            }
        });
    }

    /// A `PinnedRange` header over a value, as RFC 9110 reads it. Several ranges in one header, and what is
    /// no range, are answered by the whole value, as that is allowed.
    ///
    /// @param from first byte
    /// @param length 0 when no byte of the value is in the range
    /// @param isWhole whether no range was asked for
    record RangeHeader(long from, long length, boolean isWhole) {

        private static final Pattern SYNTAX = Pattern.compile("bytes=\\s*(\\d*)-(\\d*)\\s*", Pattern.CASE_INSENSITIVE);

        /// Digits that a `long` takes whatever they are; more are beyond any value.
        private static final int MAX_DIGITS = 18;

        static RangeHeader of(@Nullable String header, long bytes) {
            RangeHeader all = new RangeHeader(0, bytes, true);
            Matcher range = SYNTAX.matcher(header == null ? "" : header);
            if (!range.matches() || (range.group(1).isEmpty() && range.group(2).isEmpty())) {
                return all;
            }
            if (range.group(1).isEmpty()) {
                long last = number(range.group(2));
                return clamp(Math.max(0, bytes - last), bytes - 1, bytes, last > 0);
            }
            long from = number(range.group(1));
            long to = range.group(2).isEmpty() ? Long.MAX_VALUE : number(range.group(2));
            return to < from ? all : clamp(from, to, bytes, true);
        }

        private static long number(String digits) {
            return digits.length() > MAX_DIGITS ? Long.MAX_VALUE : Long.parseLong(digits);
        }

        private static RangeHeader clamp(long from, long to, long bytes, boolean any) {
            long end = Math.min(to, bytes - 1);
            boolean none = !any || from > end || from < 0;
            return none ? new RangeHeader(0, 0, false) : new RangeHeader(from, end - from + 1, false);
        }

        /// Returns whether any byte is in it.
        boolean isSatisfiable() {
            return isWhole || length > 0;
        }
    }

    /// Bytes of the store on their way to a client.
    ///
    /// **Ownership.** The receiver calls [#release], once.
    ///
    /// @param bytes how many
    /// @param segments shows the memory of a range of them
    /// @param release gives them free
    record PinnedBytes(long bytes, SegmentSource segments, Runnable release) {

        /// Shows the memory of a range, piece by piece in order, in place.
        @FunctionalInterface
        interface SegmentSource {
            /// Shows the range.
            ///
            /// @throws IndexOutOfBoundsException when it does not lie in the bytes
            void visit(long offset, long length, SegmentVisitor each);
        }

        /// A value of the keyspace.
        static PinnedBytes of(PinnedValue value) {
            return new PinnedBytes(value.bytes(), value::visit, value::close);
        }
    }
}
