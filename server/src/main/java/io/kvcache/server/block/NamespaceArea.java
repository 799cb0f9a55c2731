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
public final class NamespaceArea implements Area {

    private static final String ALL = "/v1/namespaces";
    private static final String ONE = ALL + "/";

    private final BlockNamespaces namespaces;

    public NamespaceArea(BlockNamespaces namespaces) {
        this.namespaces = namespaces;
    }

    @Override
    public List<String> paths() {
        return List.of(ALL, ONE + "{name}");
    }

    @Override
    public @Nullable Exchange find(HttpRequest request, String path, String tenant) {
        if (path.equals(ALL)) {
            return request.method().name().equals("GET")
                    ? (Exchange.Plain) out -> out.json(HttpResponseStatus.OK, list(tenant))
                    : HttpReplies.notAllowed(request, "GET");
        }
        return path.startsWith(ONE) ? one(request, PathText.decode(path.substring(ONE.length())), tenant) : null;
    }

    private Map<String, Object> list(String tenant) {
        return Map.of(
                "namespaces",
                namespaces.of(tenant).stream().map(NamespaceText::write).toList());
    }

    private Exchange one(HttpRequest request, @Nullable String name, String tenant) {
        if (name == null || name.isBlank()) {
            return new Problem(HttpResponseStatus.BAD_REQUEST, "a name takes 1 to 512 bytes of UTF-8, percent-encoded")
                    .exchange();
        }
        return switch (request.method().name()) {
            case "GET" ->
                (Exchange.Plain) out -> {
                    Namespace known = namespaces.find(tenant, name);
                    if (known == null) {
                        out.problem(unknown(name));
                    } else {
                        out.json(HttpResponseStatus.OK, NamespaceText.write(known));
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
            out.problem(unknown(name));
        } else if (blocks > 0) {
            out.problem(Problem.named(
                    HttpResponseStatus.CONFLICT,
                    "namespace-not-empty",
                    "namespace " + name + " has " + blocks + " blocks; delete them first"));
        } else {
            out.empty(HttpResponseStatus.NO_CONTENT);
        }
    }

    static Problem unknown(String name) {
        return Problem.named(
                HttpResponseStatus.NOT_FOUND,
                "unknown-namespace",
                "there is no namespace " + name + "; register it by PUT " + ONE + "{name}");
    }

    private void register(JsonNode body, String name, String tenant, HttpReplies out) {
        String owner = namespaces.owner(tenant, name, JsonRequest.text(body, "salt", ""));
        Namespace asked = NamespaceText.read(body, name, owner);
        BlockNamespaces.Registered registered;
        try {
            registered = namespaces.register(asked);
        } catch (IllegalArgumentException refused) {
            out.problem(Problem.named(
                    HttpResponseStatus.CONFLICT, "namespace-refused", String.valueOf(refused.getMessage())));
            return;
        }
        if (registered.namespace().equals(asked)) {
            HttpResponseStatus status = registered.isNew() ? HttpResponseStatus.CREATED : HttpResponseStatus.OK;
            out.json(status, NamespaceText.write(asked));
        } else {
            out.problem(conflict(registered.namespace(), asked));
        }
    }

    private static Problem conflict(Namespace registered, Namespace asked) {
        if (!NamespaceText.shapeOf(registered).equals(NamespaceText.shapeOf(asked))) {
            return Shapes.mismatch(registered, NamespaceText.shapeOf(asked));
        }
        return Problem.named(
                        HttpResponseStatus.CONFLICT,
                        "namespace-differs",
                        "namespace " + registered.model()
                                + " is registered with another revision, dtype, layout, adapter or salt")
                .with("registered", NamespaceText.write(registered))
                .with("asked", NamespaceText.write(asked));
    }
}
