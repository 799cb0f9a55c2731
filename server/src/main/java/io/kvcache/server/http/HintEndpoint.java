package io.kvcache.server.http;

import io.kvcache.core.ObjectHint;
import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;

/// `/v1/hints`: what only a client knows of keys. `/v1/prefix`: counts the leading keys that are here, and pins them.
public final class HintEndpoint implements HttpEndpoint {

    private static final String HINTS = "/v1/hints";
    private static final String PREFIX = "/v1/prefix";
    private static final String MILLISECONDS = "milliseconds";
    private static final String KEYS_FORM = "a list of texts";
    private static final String WEIGHT_FORM = "a number from 0 to 1";
    private static final String KINDS = "expect, return, forget, pin, unpin, label, session, weigh, expire";

    private final Function<String, KeyspaceRouter> routers;

    /// @param reaches what each tenant may name, by its name
    public HintEndpoint(Function<String, KeyspaceRouter> reaches) {
        this.routers = reaches;
    }

    @Override
    public List<String> paths() {
        return List.of(HINTS, PREFIX);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!path.equals(HINTS) && !path.equals(PREFIX)) {
            return null;
        }
        return request.method().name().equals("POST")
                ? new JsonBodyHandler((body, out) -> {
                    KeyspaceRouter router = routers.apply(tenant);
                    if (path.equals(HINTS)) {
                        applyHint(body, router, out);
                    } else {
                        pinPrefix(body, router, out);
                    }
                })
                : HttpResponder.methodNotAllowed(request, "POST");
    }

    private static void applyHint(JsonNode body, KeyspaceRouter router, HttpResponder out) {
        ObjectHint hint = parseHint(body);
        List<byte[]> keys = keys(body, HintLimits::requireKeys);
        router.applyHint(keys, hint, out::yieldLoop, taken -> sendCount(out, "taken", taken));
    }

    private static void pinPrefix(JsonNode body, KeyspaceRouter router, HttpResponder out) {
        JsonBodyHandler.requireKnownMembers(body, List.of("keys", MILLISECONDS));
        Duration pinTime = HintLimits.prefixPin(body.has(MILLISECONDS) ? millis(body) : 0);
        List<byte[]> keys = keys(body, HintLimits::requirePrefixKeys);
        router.pinPrefix(keys, pinTime, out::yieldLoop, present -> sendCount(out, "present", present));
    }

    private static void sendCount(HttpResponder out, String name, int count) {
        out.sendJson(HttpResponseStatus.OK, Map.of(name, count));
    }

    private static ObjectHint parseHint(JsonNode body) {
        String kind = text(body, "hint", KINDS);
        return switch (kind) {
            case "expect" -> requireMembers(body, List.of(), HintLimits.expect(0));
            case "forget" -> requireMembers(body, List.of(), new ObjectHint.Forget());
            case "unpin" -> requireMembers(body, List.of(), HintLimits.unpin());
            case "return" -> requireMembers(body, List.of(MILLISECONDS), HintLimits.expect(millis(body)));
            case "pin" -> requireMembers(body, List.of(MILLISECONDS), HintLimits.pin(millis(body)));
            case "expire" -> requireMembers(body, List.of(MILLISECONDS), HintLimits.expire(millis(body)));
            case "weigh" -> requireMembers(body, List.of("weight"), HintLimits.weigh(weight(body)));
            case "label" ->
                requireMembers(
                        body,
                        List.of("kind", "turn"),
                        HintLimits.label(text(body, "kind", HintLimits.KINDS), text(body, "turn", HintLimits.TURNS)));
            case "session" -> requireMembers(body, List.of("kind", "session", "turn", "last"), parseSession(body));
            default -> throw new IllegalArgumentException("hint is \"" + kind + "\"; it takes " + KINDS);
        };
    }

    /// A hint, if its request has no members that it does not know.
    private static ObjectHint requireMembers(JsonNode body, List<String> own, ObjectHint hint) {
        List<String> known = new ArrayList<>(List.of("hint", "keys"));
        known.addAll(own);
        JsonBodyHandler.requireKnownMembers(body, known);
        return hint;
    }

    private static ObjectHint parseSession(JsonNode body) {
        JsonNode last = body.get("last");
        if (last != null && !last.isBoolean()) {
            throw new IllegalArgumentException("last takes true or false");
        }
        return HintLimits.session(
                text(body, "kind", HintLimits.KINDS),
                integerMember(body, "session"),
                integerMember(body, "turn"),
                last != null && last.booleanValue());
    }

    private static long millis(JsonNode body) {
        return integerMember(body, MILLISECONDS);
    }

    /// A member that may not be missing.
    ///
    /// @param form of its value, for the error
    private static JsonNode member(JsonNode body, String name, String form) {
        JsonNode member = body.get(name);
        if (member == null) {
            throw new IllegalArgumentException(name + " is missing; it takes " + form);
        }
        return member;
    }

    private static String text(JsonNode body, String name, String values) {
        JsonNode member = member(body, name, values);
        if (!member.isString()) {
            throw new IllegalArgumentException(name + " takes a text");
        }
        return member.stringValue();
    }

    /// A member that is a whole number of up to 64 bits.
    private static long integerMember(JsonNode body, String name) {
        JsonNode member = member(body, name, "a whole number");
        if (!member.isIntegralNumber() || !member.canConvertToLong()) {
            throw new IllegalArgumentException(name + " takes a whole number");
        }
        return member.longValue();
    }

    private static double weight(JsonNode body) {
        JsonNode member = member(body, "weight", WEIGHT_FORM);
        if (!member.isNumber()) {
            throw new IllegalArgumentException("weight takes " + WEIGHT_FORM);
        }
        return member.doubleValue();
    }

    /// The keys of a request.
    ///
    /// @param requireCount rejects a count of keys that cannot be
    /// @throws IllegalArgumentException when there are none, or one that cannot be
    private static List<byte[]> keys(JsonNode body, IntConsumer requireCount) {
        JsonNode named = member(body, "keys", KEYS_FORM);
        if (!named.isArray()) {
            throw new IllegalArgumentException("keys takes " + KEYS_FORM);
        }
        requireCount.accept(named.size());
        List<byte[]> keys = new ArrayList<>(named.size());
        for (JsonNode each : named) {
            if (!each.isString()) {
                throw new IllegalArgumentException("keys takes " + KEYS_FORM);
            }
            byte[] key = each.stringValue().getBytes(StandardCharsets.UTF_8);
            HintLimits.requireKey(key);
            keys.add(key);
        }
        return keys;
    }

    /// A request whose body is a JSON object.
    private static final class JsonBodyHandler implements HttpRequestHandler {

        /// Hints about tens of thousands of keys.
        static final int MAX_BODY_BYTES = 8 << 20;

        private final BiConsumer<JsonNode, HttpResponder> reply;
        private final CompositeByteBuf body = Unpooled.compositeBuffer(1024);
        private boolean tooLong;

        /// @param reply answers; an `IllegalArgumentException` of its own is answered as the client's mistake
        JsonBodyHandler(BiConsumer<JsonNode, HttpResponder> reply) {
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
                        HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                        "the body takes up to " + MAX_BODY_BYTES + " bytes"));
                return;
            }
            try {
                reply.accept(parseObject(body), out);
            } catch (IllegalArgumentException mistake) {
                out.sendProblem(
                        new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())));
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
            } catch (IOException impossible) {
                throw new IllegalStateException("a buffer in memory failed", impossible);
            }
        }

        /// Rejects unknown members.
        ///
        /// @throws IllegalArgumentException that names the first of them
        static void requireKnownMembers(JsonNode object, List<String> known) {
            for (String name : object.propertyNames()) {
                if (!known.contains(name)) {
                    throw new IllegalArgumentException(
                            "there is no member " + name + "; there are " + String.join(", ", known));
                }
            }
        }

        @Override
        public void close() {
            body.release();
        }
    }
}
