package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The requests below some paths.
public interface HttpEndpoint {

    /// The paths, for the message that says which there are.
    List<String> paths();

    /// What answers a request, or null when its path is not of this area.
    ///
    /// @param path of the request, without its query
    /// @param tenant of the client
    @Nullable
    HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant);
}
