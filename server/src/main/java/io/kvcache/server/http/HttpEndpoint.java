package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The requests below some paths.
public interface HttpEndpoint {

    /// The paths, for the message that says which there are.
    List<String> paths();

    /// Returns the handler of a request, or null when its path does not belong to this endpoint.
    ///
    /// @param path of the request, without its query
    /// @param tenant of the client
    @Nullable
    HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant);
}
