package io.kvcache.server;

import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.ProblemDetails;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Stands at a listener without `pages` in place of what operators find at one that has them, and says which setting
/// serves that.
record OperatorEndpointsNotice(ListenerConfig listen) implements HttpEndpoint {

    private static final List<String> OPERATOR_PATHS = List.of("/metrics", "/v1/stats", "/v1/events", "/v1/disks");

    @Override
    public List<String> paths() {
        return List.of();
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        boolean elsewhere = OPERATOR_PATHS.stream().anyMatch(each -> path.equals(each) || path.startsWith(each + "/"));
        return elsewhere
                ? ProblemDetails.withType(
                                HttpResponseStatus.NOT_FOUND,
                                "no-pages",
                                path + " is for operators, and this listener does not serve that; add pages to "
                                        + listen.path() + ".protocols, or ask a listener that has pages among them")
                        .toHandler()
                : null;
    }
}
