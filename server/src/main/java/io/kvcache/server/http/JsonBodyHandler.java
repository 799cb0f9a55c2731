package io.kvcache.server.http;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.io.InputStream;
import java.util.List;
import java.util.function.BiConsumer;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;

/// A request whose body is a JSON object.
public final class JsonBodyHandler implements HttpRequestHandler {

    /// Hints about tens of thousands of keys.
    static final int MAX_BODY_BYTES = 8 << 20;

    private final BiConsumer<JsonNode, HttpResponder> reply;
    private final CompositeByteBuf body = Unpooled.compositeBuffer(1024);
    private boolean tooLong;

    /// @param reply answers; an `IllegalArgumentException` of its own is answered as the client's mistake
    public JsonBodyHandler(BiConsumer<JsonNode, HttpResponder> reply) {
        this.reply = reply;
    }

    @Override
    public boolean rejectsBody(long contentLength) {
        tooLong |= contentLength > MAX_BODY_BYTES;
        return tooLong;
    }

    @Override
    public void onBody(ByteBuf part) {
        tooLong |= body.readableBytes() + part.readableBytes() > MAX_BODY_BYTES;
        if (tooLong) {
            part.skipBytes(part.readableBytes());
        } else {
            body.addComponent(true, part.readRetainedSlice(part.readableBytes()));
        }
    }

    @Override
    public void respond(HttpResponder out) {
        if (tooLong) {
            out.sendProblem(new ProblemDetails(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "the body takes up to " + MAX_BODY_BYTES + " bytes"));
            return;
        }
        try {
            reply.accept(parseObject(body), out);
        } catch (IllegalArgumentException mistake) {
            out.sendProblem(new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())));
        }
    }

    /// Reads a JSON object.
    ///
    /// @throws IllegalArgumentException when it is something else
    private static JsonNode parseObject(ByteBuf text) {
        try (InputStream in = new ByteBufInputStream(text)) {
            JsonNode object = Json.mapper().readTree(in);
            if (!object.isObject()) {
                throw new IllegalArgumentException("the body takes a JSON object");
            }
            return object;
        } catch (JacksonException malformed) {
            throw new IllegalArgumentException("the body is not JSON: " + Json.describeError(malformed), malformed);
        } catch (java.io.IOException impossible) {
            throw new IllegalStateException("a buffer in memory failed", impossible);
        }
    }

    /// Rejects unknown members.
    ///
    /// @throws IllegalArgumentException that names the first of them
    public static void requireKnownMembers(JsonNode object, List<String> known) {
        for (String name : object.propertyNames()) {
            if (!known.contains(name)) {
                throw new IllegalArgumentException(
                        "there is no member " + name + "; there are " + String.join(", ", known));
            }
        }
    }

    /// A member that is a text, or another text when it is not there.
    ///
    /// @throws IllegalArgumentException when it is something else
    public static String textMember(JsonNode object, String name, String defaultValue) {
        JsonNode member = object.get(name);
        if (member == null) {
            return defaultValue;
        }
        if (!member.isString()) {
            throw new IllegalArgumentException(name + " takes a text");
        }
        return member.stringValue();
    }

    /// A member that is a whole number.
    ///
    /// @throws IllegalArgumentException when it is missing or something else
    public static int integerMember(JsonNode object, String name) {
        JsonNode member = object.get(name);
        if (member == null || !member.isInt()) {
            throw new IllegalArgumentException(
                    name + " takes a whole number" + (member == null ? "; it is missing" : ""));
        }
        return member.intValue();
    }

    @Override
    public void close() {
        body.release();
    }
}
