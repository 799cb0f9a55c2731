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
public final class JsonRequest implements Exchange {

    /// The keys of a million tokens in blocks of 16, in hexadecimal.
    private static final int MOST_BYTES = 8 << 20;

    private final BiConsumer<JsonNode, HttpReplies> reply;
    private final CompositeByteBuf body = Unpooled.compositeBuffer(1024);
    private boolean tooLong;

    /// @param reply answers; an `IllegalArgumentException` of its own is answered as the client's mistake
    public JsonRequest(BiConsumer<JsonNode, HttpReplies> reply) {
        this.reply = reply;
    }

    @Override
    public boolean refuses(long contentLength) {
        tooLong |= contentLength > MOST_BYTES;
        return tooLong;
    }

    @Override
    public void body(ByteBuf part) {
        tooLong |= body.readableBytes() + part.readableBytes() > MOST_BYTES;
        if (tooLong) {
            part.skipBytes(part.readableBytes());
        } else {
            body.addComponent(true, part.readRetainedSlice(part.readableBytes()));
        }
    }

    @Override
    public void answer(HttpReplies out) {
        if (tooLong) {
            out.problem(new Problem(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "the body takes up to " + MOST_BYTES + " bytes"));
            return;
        }
        try (InputStream in = new ByteBufInputStream(body)) {
            JsonNode object = Json.mapper().readTree(in);
            if (!object.isObject()) {
                throw new IllegalArgumentException("the body takes a JSON object");
            }
            reply.accept(object, out);
        } catch (JacksonException malformed) {
            out.problem(new Problem(HttpResponseStatus.BAD_REQUEST, "the body is not JSON: " + Json.reason(malformed)));
        } catch (IllegalArgumentException mistake) {
            out.problem(new Problem(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())));
        } catch (java.io.IOException impossible) {
            throw new IllegalStateException("a buffer in memory failed", impossible);
        }
    }

    /// Refuses members that nobody asks for.
    ///
    /// @throws IllegalArgumentException that names the first of them
    public static void requireOnly(JsonNode object, List<String> known) {
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
    public static String text(JsonNode object, String name, String otherwise) {
        JsonNode member = object.get(name);
        if (member == null) {
            return otherwise;
        }
        if (!member.isString()) {
            throw new IllegalArgumentException(name + " takes a text");
        }
        return member.stringValue();
    }

    /// A member that is a whole number.
    ///
    /// @throws IllegalArgumentException when it is missing or something else
    public static int number(JsonNode object, String name) {
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
