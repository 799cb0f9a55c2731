package io.kvcache.server.http;

import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/prefix`: counts the leading keys that are here, and pins them.
public final class PrefixEndpoint implements HttpEndpoint {

    private static final String PATH = "/v1/prefix";
    private static final String MILLISECONDS = "milliseconds";

    private final Function<String, KeyspaceRouter> routers;

    /// @param routers what each tenant may name, by its name
    public PrefixEndpoint(Function<String, KeyspaceRouter> routers) {
        this.routers = routers;
    }

    @Override
    public List<String> paths() {
        return List.of(PATH);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!path.equals(PATH)) {
            return null;
        }
        return request.method().name().equals("POST")
                ? new JsonBodyHandler((body, out) -> pinPrefix(body, routers.apply(tenant), out))
                : HttpResponder.methodNotAllowed(request, "POST");
    }

    private static void pinPrefix(JsonNode body, KeyspaceRouter keyspaceRouter, HttpResponder out) {
        JsonBodyHandler.requireKnownMembers(body, List.of("keys", MILLISECONDS));
        long millis = body.has(MILLISECONDS) ? HintEndpoint.integerMember(body, MILLISECONDS) : 0;
        Duration pinTime = HintLimits.prefixPin(millis);
        List<byte[]> keys = HintEndpoint.keys(body, HintLimits::requirePrefixKeys);
        out.sendJson(HttpResponseStatus.OK, Map.of("present", keyspaceRouter.pinPrefix(keys, pinTime)));
    }
}
