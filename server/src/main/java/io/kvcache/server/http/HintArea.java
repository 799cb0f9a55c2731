package io.kvcache.server.http;

import io.kvcache.core.ObjectHint;
import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.Reach;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/hints`: what only a client knows of keys.
public final class HintArea implements Area {

    private static final String PATH = "/v1/hints";
    private static final String KINDS = "expect, return, forget, pin, unpin, label, session, weigh, expire";

    private final Function<String, Reach> reaches;

    /// @param reaches what each tenant may name, by its name
    public HintArea(Function<String, Reach> reaches) {
        this.reaches = reaches;
    }

    @Override
    public List<String> paths() {
        return List.of(PATH);
    }

    @Override
    public @Nullable Exchange find(HttpRequest request, String path, String tenant) {
        if (!path.equals(PATH)) {
            return null;
        }
        return request.method().name().equals("POST")
                ? new JsonRequest((body, out) -> hint(body, reaches.apply(tenant), out))
                : HttpReplies.notAllowed(request, "POST");
    }

    private static void hint(JsonNode body, Reach reach, HttpReplies out) {
        ObjectHint hint = hint(body);
        out.json(HttpResponseStatus.OK, Map.of("taken", reach.hint(keys(body), hint)));
    }

    private static ObjectHint hint(JsonNode body) {
        String kind = JsonRequest.text(body, "hint", "");
        return switch (kind) {
            case "expect" -> only(body, List.of(), HintLimits.expect(0));
            case "forget" -> only(body, List.of(), new ObjectHint.Forget());
            case "unpin" -> only(body, List.of(), HintLimits.unpin());
            case "return" -> only(body, List.of("milliseconds"), HintLimits.expect(millis(body)));
            case "pin" -> only(body, List.of("milliseconds"), HintLimits.pin(millis(body)));
            case "expire" -> only(body, List.of("milliseconds"), HintLimits.expire(millis(body)));
            case "weigh" -> only(body, List.of("weight"), HintLimits.weigh(weight(body)));
            case "label" ->
                only(
                        body,
                        List.of("kind", "turn"),
                        HintLimits.label(JsonRequest.text(body, "kind", ""), JsonRequest.text(body, "turn", "")));
            case "session" -> only(body, List.of("kind", "session", "turn", "last"), session(body));
            default -> throw new IllegalArgumentException("hint is \"" + kind + "\"; it takes " + KINDS);
        };
    }

    /// A hint, if its request has no members that it does not know.
    private static ObjectHint only(JsonNode body, List<String> own, ObjectHint hint) {
        List<String> known = new ArrayList<>(List.of("hint", "keys"));
        known.addAll(own);
        JsonRequest.requireOnly(body, known);
        return hint;
    }

    private static ObjectHint session(JsonNode body) {
        JsonNode last = body.get("last");
        if (last != null && !last.isBoolean()) {
            throw new IllegalArgumentException("last takes true or false");
        }
        return HintLimits.session(
                JsonRequest.text(body, "kind", ""),
                whole(body, "session"),
                whole(body, "turn"),
                last != null && last.booleanValue());
    }

    private static long millis(JsonNode body) {
        return whole(body, "milliseconds");
    }

    private static long whole(JsonNode body, String name) {
        JsonNode member = body.get(name);
        if (member == null || !member.isIntegralNumber() || !member.canConvertToLong()) {
            throw new IllegalArgumentException(name + " takes a whole number");
        }
        return member.longValue();
    }

    private static double weight(JsonNode body) {
        JsonNode member = body.get("weight");
        if (member == null || !member.isNumber()) {
            throw new IllegalArgumentException("weight takes a number from 0 to 1");
        }
        return member.doubleValue();
    }

    private static List<byte[]> keys(JsonNode body) {
        JsonNode named = body.get("keys");
        if (named == null || !named.isArray()) {
            throw new IllegalArgumentException("keys takes a list of texts");
        }
        HintLimits.requireKeys(named.size());
        List<byte[]> keys = new ArrayList<>(named.size());
        for (JsonNode each : named) {
            if (!each.isString()) {
                throw new IllegalArgumentException("keys takes a list of texts");
            }
            byte[] key = each.stringValue().getBytes(StandardCharsets.UTF_8);
            HintLimits.requireKey(key);
            keys.add(key);
        }
        return keys;
    }
}
