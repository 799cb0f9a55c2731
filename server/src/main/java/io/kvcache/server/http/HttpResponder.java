package io.kvcache.server.http;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Writes one reply to one request.
///
/// **Threads.** The connection's loop.
public final class HttpResponder {

    private static final String CHALLENGE = "Basic realm=\"kvcache\", charset=\"UTF-8\"";

    private final ChannelHandlerContext context;
    private final boolean keepAlive;
    private final HttpStats stats;
    private final Runnable done;
    private boolean streams;

    /// @param keepAlive whether another request may follow
    /// @param done run when the reply is written
    HttpResponder(ChannelHandlerContext context, boolean keepAlive, HttpStats stats, Runnable done) {
        this.context = context;
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

    /// What answers a request whose method is none of those that its path takes.
    ///
    /// @param allowed the methods, with commas
    public static HttpRequestHandler methodNotAllowed(HttpRequest request, String allowed) {
        ProblemDetails problemDetails = new ProblemDetails(
                HttpResponseStatus.METHOD_NOT_ALLOWED, request.method() + " is not one of " + allowed);
        return (HttpRequestHandler.BodylessHandler) out -> out.sendProblem(problemDetails, allowed);
    }

    private void sendUnsatisfiable(long bytes) {
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

    private void finish(FullHttpResponse reply) {
        HttpUtil.setKeepAlive(reply, keepAlive);
        context.write(reply, context.voidPromise());
        done.run();
    }

    /// Answers by bytes of the store, or by the range of them that was asked for. Takes them over.
    ///
    /// @param range the request's `PinnedRange`, if it has one
    /// @param withBody false for HEAD
    public void sendPinned(PinnedBytes held, @Nullable String range, boolean withBody) {
        RangeHeader cut = RangeHeader.of(range, held.bytes());
        if (!cut.isSatisfiable()) {
            held.release().run();
            sendUnsatisfiable(held.bytes());
            return;
        }
        HttpResponse reply = new DefaultHttpResponse(
                HttpVersion.HTTP_1_1, cut.isWhole() ? HttpResponseStatus.OK : HttpResponseStatus.PARTIAL_CONTENT);
        HttpHeaders headers = reply.headers()
                .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.APPLICATION_OCTET_STREAM)
                .set(HttpHeaderNames.ACCEPT_RANGES, HttpHeaderValues.BYTES)
                .set(HttpHeaderNames.CONTENT_LENGTH, cut.length());
        if (!cut.isWhole()) {
            long to = cut.from() + cut.length() - 1;
            headers.set(HttpHeaderNames.CONTENT_RANGE, "bytes " + cut.from() + "-" + to + "/" + held.bytes());
        }
        HttpUtil.setKeepAlive(reply, keepAlive);
        context.write(reply, context.voidPromise());
        if (withBody) {
            ZeroCopyIo.write(
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

    /// Whether the reply is one of no known length.
    boolean isStreaming() {
        return streams;
    }

    /// Begins a reply of no known length.
    public HttpStream openStream(String contentType) {
        streams = true;
        HttpResponse reply = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        reply.headers()
                .set(HttpHeaderNames.CONTENT_TYPE, contentType)
                .set(HttpHeaderNames.CACHE_CONTROL, HttpHeaderValues.NO_CACHE)
                .set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
        HttpUtil.setKeepAlive(reply, keepAlive);
        context.write(reply, context.voidPromise());
        return new HttpStream(context, done);
    }

    /// Replies later, from whatever thread this is called on.
    ///
    /// @param reply run on the connection's loop
    /// @param giveUp run instead when there is no connection any more
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

    /// Replies with a value once it has come from disk, or with none when it has not come in time; not at all when
    /// the connection has ended by then.
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> reply) {
        awaitValue(keyspace, key, Long.MAX_VALUE, reply);
    }

    /// The same for a client who waits no longer than a time of his own.
    public void awaitValue(Keyspace keyspace, byte[] key, long maxNanos, Consumer<ReadResult> reply) {
        keyspace.fetch(key, maxNanos, context.channel().eventLoop(), readResult -> {
            PinnedValue value = readResult.value();
            if (context.channel().isActive()) {
                reply.accept(readResult);
            } else if (value != null) {
                value.close();
            }
        });
    }
}
