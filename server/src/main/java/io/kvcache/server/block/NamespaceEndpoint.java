package io.kvcache.server.block;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Area;
import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.JsonRequest;
import io.kvcache.server.http.PathText;
import io.kvcache.server.http.Problem;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/namespaces`: what blocks there may be, and what they look like.
public final class NamespaceEndpoint implements Area {

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
    public @Nullable Exchange handlerFor(HttpRequest request, String path, String tenant) {
        if (path.equals(NAMESPACES_PATH)) {
            return request.method().name().equals("GET")
                    ? (Exchange.Plain) out -> out.json(HttpResponseStatus.OK, list(tenant))
                    : HttpReplies.notAllowed(request, "GET");
        }
        return path.startsWith(NAMESPACE_PREFIX)
                ? routeNamespace(request, PathText.decode(path.substring(NAMESPACE_PREFIX.length())), tenant)
                : null;
    }

    private Map<String, Object> list(String tenant) {
        return Map.of(
                "namespaces",
                namespaces.namespacesOf(tenant).stream()
                        .map(NamespaceJson::toJson)
                        .toList());
    }

    private Exchange routeNamespace(HttpRequest request, @Nullable String name, String tenant) {
        if (name == null || name.isBlank()) {
            return new Problem(HttpResponseStatus.BAD_REQUEST, "a name takes 1 to 512 bytes of UTF-8, percent-encoded")
                    .exchange();
        }
        return switch (request.method().name()) {
            case "GET" ->
                (Exchange.Plain) out -> {
                    Namespace known = namespaces.find(tenant, name);
                    if (known == null) {
                        out.problem(unknownNamespace(name));
                    } else {
                        out.json(HttpResponseStatus.OK, NamespaceJson.toJson(known));
                    }
                };
            case "PUT" -> new JsonRequest((body, out) -> register(body, name, tenant, out));
            case "DELETE" -> (Exchange.Plain) out -> delete(name, tenant, out);
            default -> HttpReplies.notAllowed(request, "GET, PUT, DELETE");
        };
    }

    private void delete(String name, String tenant, HttpReplies out) {
        long blocks = namespaces.delete(tenant, name);
        if (blocks < 0) {
            out.problem(unknownNamespace(name));
        } else if (blocks > 0) {
            out.problem(Problem.named(
                    HttpResponseStatus.CONFLICT,
                    "namespace-not-empty",
                    "namespace " + name + " has " + blocks + " blocks; delete them first"));
        } else {
            out.empty(HttpResponseStatus.NO_CONTENT);
        }
    }

    static Problem unknownNamespace(String name) {
        return Problem.named(
                HttpResponseStatus.NOT_FOUND,
                "unknown-namespace",
                "there is no namespace " + name + "; register it by PUT " + NAMESPACE_PREFIX + "{name}");
    }

    private void register(JsonNode body, String name, String tenant, HttpReplies out) {
        String owner = namespaces.ownerOf(tenant, name, JsonRequest.text(body, "salt", ""));
        Namespace requested = NamespaceJson.fromJson(body, name, owner);
        TenantNamespaceRegistry.RegisterResult registerResult;
        try {
            registerResult = namespaces.register(requested);
        } catch (IllegalArgumentException refused) {
            out.problem(Problem.named(
                    HttpResponseStatus.CONFLICT, "namespace-refused", String.valueOf(refused.getMessage())));
            return;
        }
        if (registerResult.namespace().equals(requested)) {
            HttpResponseStatus status = registerResult.isNew() ? HttpResponseStatus.CREATED : HttpResponseStatus.OK;
            out.json(status, NamespaceJson.toJson(requested));
        } else {
            out.problem(conflict(registerResult.namespace(), requested));
        }
    }

    private static Problem conflict(Namespace registered, Namespace requested) {
        if (!NamespaceJson.shapeOf(registered).equals(NamespaceJson.shapeOf(requested))) {
            return ShapeHeader.mismatchProblem(registered, NamespaceJson.shapeOf(requested));
        }
        return Problem.named(
                        HttpResponseStatus.CONFLICT,
                        "namespace-differs",
                        "namespace " + registered.model()
                                + " is registered with another revision, dtype, layout, adapter or salt")
                .with("registered", NamespaceJson.toJson(registered))
                .with("asked", NamespaceJson.toJson(requested));
    }
}
