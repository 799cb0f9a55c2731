package io.kvcache.server.block;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.NamespaceJson.ShapeHeader;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.JsonBodyHandler;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/namespaces`: what blocks there may be, and what they look like.
public final class NamespaceEndpoint implements HttpEndpoint {

    private static final String NAMESPACES_PATH = "/v1/namespaces";
    private static final String NAMESPACE_PREFIX = NAMESPACES_PATH + "/";

    private final TenantNamespaceRegistry namespaces;

    public NamespaceEndpoint(TenantNamespaceRegistry namespaces) {
        this.namespaces = namespaces;
    }

    @Override
    public List<String> paths() {
        return List.of(NAMESPACES_PATH, NAMESPACE_PREFIX + "{name}");
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (path.equals(NAMESPACES_PATH)) {
            return request.method().name().equals("GET")
                    ? (HttpRequestHandler.BodylessHandler) out -> out.sendJson(HttpResponseStatus.OK, list(tenant))
                    : HttpResponder.methodNotAllowed(request, "GET");
        }
        return path.startsWith(NAMESPACE_PREFIX)
                ? routeNamespace(request, PercentDecoder.decode(path.substring(NAMESPACE_PREFIX.length())), tenant)
                : null;
    }

    private Map<String, Object> list(String tenant) {
        return Map.of(
                "namespaces",
                namespaces.namespacesOf(tenant).stream()
                        .map(NamespaceJson::toJson)
                        .toList());
    }

    private HttpRequestHandler routeNamespace(HttpRequest request, @Nullable String name, String tenant) {
        if (name == null || name.isBlank()) {
            return new ProblemDetails(
                            HttpResponseStatus.BAD_REQUEST, "a name takes 1 to 512 bytes of UTF-8, percent-encoded")
                    .toHandler();
        }
        return switch (request.method().name()) {
            case "GET" ->
                (HttpRequestHandler.BodylessHandler) out -> {
                    Namespace known = namespaces.find(tenant, name);
                    if (known == null) {
                        out.sendProblem(unknownNamespace(name));
                    } else {
                        out.sendJson(HttpResponseStatus.OK, NamespaceJson.toJson(known));
                    }
                };
            case "PUT" -> new JsonBodyHandler((body, out) -> register(body, name, tenant, out));
            case "DELETE" -> (HttpRequestHandler.BodylessHandler) out -> delete(name, tenant, out);
            default -> HttpResponder.methodNotAllowed(request, "GET, PUT, DELETE");
        };
    }

    private void delete(String name, String tenant, HttpResponder out) {
        long blocks = namespaces.delete(tenant, name);
        if (blocks < 0) {
            out.sendProblem(unknownNamespace(name));
        } else if (blocks > 0) {
            out.sendProblem(ProblemDetails.withType(
                    HttpResponseStatus.CONFLICT,
                    "namespace-not-empty",
                    "namespace " + name + " has " + blocks + " blocks; delete them first"));
        } else {
            out.sendEmpty(HttpResponseStatus.NO_CONTENT);
        }
    }

    static ProblemDetails unknownNamespace(String name) {
        return ProblemDetails.withType(
                HttpResponseStatus.NOT_FOUND,
                "unknown-namespace",
                "there is no namespace " + name + "; register it by PUT " + NAMESPACE_PREFIX + "{name}");
    }

    private void register(JsonNode body, String name, String tenant, HttpResponder out) {
        String owner = namespaces.ownerOf(tenant, name, JsonBodyHandler.textMember(body, "salt", ""));
        Namespace requested = NamespaceJson.fromJson(body, name, owner);
        TenantNamespaceRegistry.RegisterResult registerResult;
        try {
            registerResult = namespaces.register(requested);
        } catch (IllegalArgumentException refused) {
            out.sendProblem(ProblemDetails.withType(
                    HttpResponseStatus.CONFLICT, "namespace-refused", String.valueOf(refused.getMessage())));
            return;
        }
        if (registerResult.namespace().equals(requested)) {
            HttpResponseStatus status = registerResult.isNew() ? HttpResponseStatus.CREATED : HttpResponseStatus.OK;
            out.sendJson(status, NamespaceJson.toJson(requested));
        } else {
            out.sendProblem(conflict(registerResult.namespace(), requested));
        }
    }

    private static ProblemDetails conflict(Namespace registered, Namespace requested) {
        if (!NamespaceJson.shapeOf(registered).equals(NamespaceJson.shapeOf(requested))) {
            return ShapeHeader.mismatchProblem(registered, NamespaceJson.shapeOf(requested));
        }
        return ProblemDetails.withType(
                        HttpResponseStatus.CONFLICT,
                        "namespace-differs",
                        "namespace " + registered.model()
                                + " is registered with another revision, dtype, layout, adapter or salt")
                .withMember("registered", NamespaceJson.toJson(registered))
                .withMember("asked", NamespaceJson.toJson(requested));
    }
}
