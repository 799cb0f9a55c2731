package io.kvcache.server.http;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.forward.Dialect;
import io.kvcache.server.forward.PassedValue;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.http.HttpResponder.RangeHeader;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A request about an object that another server of the cluster owns. It is passed on as a command of Redis' protocol.
final class ForwardedObjectHandler implements HttpRequestHandler {

    private final RequestForwarder forwarder;
    private final String tenant;
    private final Keyspace keyspace;
    private final byte[] key;
    private final int slot;
    private final String method;
    private final @Nullable String range;

    /// The body of a PUT.
    private @Nullable PassedValue body;

    private ForwardedObjectHandler(
            RequestForwarder forwarder, String tenant, KeyspaceRouter router, byte[] key, HttpRequest request) {
        this.forwarder = forwarder;
        this.tenant = tenant;
        keyspace = router.of(key);
        slot = router.slotOf(key);
        this.key = key;
        method = request.method().name();
        range = RangeHeader.headerOf(request);
    }

    /// Passes a GET, HEAD or DELETE on.
    static HttpRequestHandler of(
            RequestForwarder forwarder, String tenant, KeyspaceRouter router, byte[] key, HttpRequest request) {
        return new ForwardedObjectHandler(forwarder, tenant, router, key, request);
    }

    /// Passes a PUT on.
    ///
    /// @param bytes of the value
    static HttpRequestHandler ofPut(
            RequestForwarder forwarder,
            String tenant,
            KeyspaceRouter router,
            byte[] key,
            HttpRequest request,
            long bytes) {
        PassedValue body = PassedValue.begin(router.of(key).keyspaceLimits().incoming(), bytes);
        if (body == null) {
            return new ProblemDetails(
                            HttpResponseStatus.INSUFFICIENT_STORAGE, "as much is being received as may be; try again")
                    .toHandler();
        }
        ForwardedObjectHandler handler = new ForwardedObjectHandler(forwarder, tenant, router, key, request);
        handler.body = body;
        return handler;
    }

    @Override
    public void onBody(ByteBuf part) {
        ByteBuf target = body == null ? null : body.bytes();
        if (target == null) {
            part.skipBytes(part.readableBytes());
        } else {
            target.writeBytes(part, Math.min(part.readableBytes(), target.writableBytes()));
        }
    }

    @Override
    public void respond(HttpResponder out) {
        switch (method) {
            case "GET" -> ask(out, reading(), reply -> sendValue(reply, out), "GET");
            case "HEAD" -> ask(out, reading(), reply -> sendLength(reply, out), "EXISTS");
            case "DELETE" ->
                ask(out, changing(), reply -> send(reply, ":1", HttpResponseStatus.NO_CONTENT, out), "DEL");
            default -> put(out);
        }
    }

    private Kind reading() {
        return keyspace.isContent(key) ? Kind.CONTENT : Kind.READ;
    }

    private Kind changing() {
        return keyspace.isContent(key) ? Kind.CONTENT : Kind.REPEATABLE_WRITE;
    }

    private void put(HttpResponder out) {
        if (body == null || body.bytes().isWritable()) {
            out.sendProblem(
                    new ProblemDetails(HttpResponseStatus.BAD_REQUEST, "the body is shorter than its Content-Length"));
            return;
        }
        ask(out, changing(), reply -> send(reply, "+", HttpResponseStatus.NO_CONTENT, out), "SET");
    }

    /// @param expected how the reply begins that is told by the status; others say that there is no such object
    private static void send(Reply reply, String expected, HttpResponseStatus status, HttpResponder out) {
        try (reply) {
            if (isError(reply)) {
                out.sendProblem(problem(reply));
            } else if (reply.firstBytes(expected.length()).equals(expected)) {
                out.sendEmpty(status);
            } else {
                out.sendProblem(notFound());
            }
        }
    }

    private void sendValue(Reply reply, HttpResponder out) {
        long bytes = isError(reply) ? -1 : number(reply);
        if (bytes < 0) {
            try (reply) {
                out.sendProblem(isError(reply) ? problem(reply) : notFound());
            }
            return;
        }
        int headBytes = "$\r\n".length() + Long.toString(bytes).length();
        out.sendPinned(
                new PinnedBytes(
                        bytes, (offset, length, each) -> visit(reply, headBytes + offset, length, each), reply::close),
                range,
                true);
    }

    private static void visit(Reply reply, long offset, long length, SegmentVisitor each) {
        long start = 0;
        for (MemorySegment piece : reply.pieces()) {
            long from = Math.max(offset, start);
            long to = Math.min(offset + length, start + piece.byteSize());
            if (from < to) {
                each.visitSegment(piece, from - start, to - from);
            }
            start += piece.byteSize();
        }
    }

    private void sendLength(Reply exists, HttpResponder out) {
        if (isError(exists) || number(exists) == 0) {
            send(exists, "+", HttpResponseStatus.OK, out);
            return;
        }
        exists.close();
        ask(
                out,
                reading(),
                reply -> {
                    try (reply) {
                        if (isError(reply)) {
                            out.sendProblem(problem(reply));
                        } else {
                            out.sendPinned(new PinnedBytes(number(reply), (_, _, _) -> {}, () -> {}), range, false);
                        }
                    }
                },
                "STRLEN");
    }

    private static boolean isError(Reply reply) {
        return !reply.error().isEmpty() || reply.firstBytes(1).equals("-");
    }

    /// The number in the first line of a reply.
    private static long number(Reply reply) {
        String text = reply.firstBytes(24);
        return Long.parseLong(text, 1, text.indexOf('\r'), 10);
    }

    private static ProblemDetails problem(Reply reply) {
        String text = reply.error().isEmpty()
                ? reply.firstBytes(200).lines().findFirst().orElse("")
                : reply.error();
        HttpResponseStatus status = text.startsWith("-OOM")
                ? HttpResponseStatus.INSUFFICIENT_STORAGE
                : HttpResponseStatus.SERVICE_UNAVAILABLE;
        return new ProblemDetails(status, "the server that owns the object: " + text);
    }

    private static ProblemDetails notFound() {
        return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "no such object");
    }

    private void ask(HttpResponder out, Kind kind, Consumer<Reply> then, String command) {
        PassedValue value = command.equals("SET") ? body : null;
        RequestBytes bytes = value == null
                ? RequestBytes.command(command, key)
                : new RequestBytes().beginArray(3).bulk(command).bulk(key).bulk(value.bytes());
        Request request = new Request(tenant, Dialect.RESP2, slot, kind, bytes.segments());
        forwarder.forward(request, reply -> {
            bytes.release();
            out.sendLater(() -> then.accept(reply), reply::close);
        });
    }

    @Override
    public void close() {
        PassedValue value = body;
        if (value != null) {
            body = null;
            value.release();
        }
    }
}
