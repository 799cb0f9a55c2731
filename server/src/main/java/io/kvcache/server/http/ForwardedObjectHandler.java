package io.kvcache.server.http;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestBytes.PassedValue;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.DefaultHttpHeaders;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A request about an object that another server of the cluster owns. It is passed on with what matters of its
/// headers, and so is the reply.
final class ForwardedObjectHandler implements HttpRequestHandler {

    private static final List<CharSequence> PASSED_HEADERS = List.of(
            HttpHeaderNames.RANGE, HttpHeaderNames.IF_RANGE, HttpHeaderNames.IF_MATCH, HttpHeaderNames.IF_NONE_MATCH);

    private static final String VERSION = "HTTP/1.1 ";
    private static final String HEAD_END = "\r\n\r\n";

    /// More than a reply about an object has.
    private static final int MAX_HEAD_BYTES = 4 << 10;

    private final RequestForwarder forwarder;
    private final String tenant;
    private final int slot;
    private final Kind kind;
    private final String head;

    /// The body of a PUT.
    private @Nullable PassedValue body;

    private ForwardedObjectHandler(
            RequestForwarder forwarder,
            String tenant,
            KeyspaceRouter router,
            byte[] key,
            HttpRequest request,
            @Nullable PassedValue body) {
        this.body = body;
        this.forwarder = forwarder;
        this.tenant = tenant;
        slot = router.slotOf(key);
        kind = kindOf(router.of(key), key, request);
        StringBuilder text = new StringBuilder(request.method().name())
                .append(' ')
                .append(request.uri())
                .append(" HTTP/1.1\r\nhost: kvcache");
        for (CharSequence name : PASSED_HEADERS) {
            for (String value : request.headers().getAll(name)) {
                text.append("\r\n").append(name).append(": ").append(value);
            }
        }
        if (body != null) {
            text.append("\r\ncontent-length: ").append(body.bytes().capacity());
        }
        head = text.append(HEAD_END).toString();
    }

    private static Kind kindOf(Keyspace keyspace, byte[] key, HttpRequest request) {
        if (keyspace.isContent(key)) {
            return Kind.CONTENT;
        }
        if (request.method().equals(HttpMethod.GET) || request.method().equals(HttpMethod.HEAD)) {
            return Kind.READ;
        }
        boolean conditional = request.headers().contains(HttpHeaderNames.IF_MATCH)
                || request.headers().contains(HttpHeaderNames.IF_NONE_MATCH);
        return conditional ? Kind.WRITE : Kind.REPEATABLE_WRITE;
    }

    /// Passes a GET, HEAD or DELETE on.
    static HttpRequestHandler of(
            RequestForwarder forwarder, String tenant, KeyspaceRouter router, byte[] key, HttpRequest request) {
        return new ForwardedObjectHandler(forwarder, tenant, router, key, request, null);
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
        return new ForwardedObjectHandler(forwarder, tenant, router, key, request, body);
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
        PassedValue value = body;
        if (value != null && value.bytes().isWritable()) {
            out.sendProblem(
                    new ProblemDetails(HttpResponseStatus.BAD_REQUEST, "the body is shorter than its Content-Length"));
            return;
        }
        RequestBytes bytes = new RequestBytes().add(head.getBytes(StandardCharsets.ISO_8859_1));
        if (value != null) {
            bytes.add(value.bytes());
        }
        forwarder.forward(new Request(tenant, Dialect.HTTP, slot, kind, bytes.segments()), reply -> {
            bytes.release();
            out.sendLater(() -> send(reply, out), reply::close);
        });
    }

    private static void send(Reply reply, HttpResponder out) {
        String start = reply.firstBytes(MAX_HEAD_BYTES);
        int end = start.indexOf(HEAD_END);
        if (end < 0) {
            String problem = reply.error().isEmpty() ? "its reply is no HTTP" : reply.error();
            reply.close();
            out.sendProblem(new ProblemDetails(
                    HttpResponseStatus.SERVICE_UNAVAILABLE, "the server that owns the object: " + problem));
            return;
        }
        List<String> lines = start.substring(0, end).lines().toList();
        HttpHeaders headers = new DefaultHttpHeaders();
        for (String line : lines.subList(1, lines.size())) {
            int colon = line.indexOf(':');
            headers.add(line.substring(0, colon), line.substring(colon + 1).strip());
        }
        int headBytes = end + HEAD_END.length();
        out.sendReply(
                HttpResponseStatus.parseLine(lines.getFirst().substring(VERSION.length())),
                headers,
                new PinnedBytes(
                        reply.byteCount() - headBytes,
                        (offset, length, each) -> visit(reply, headBytes + offset, length, each),
                        reply::close));
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

    @Override
    public void close() {
        PassedValue value = body;
        if (value != null) {
            body = null;
            value.release();
        }
    }
}
