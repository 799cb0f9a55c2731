package io.kvcache.server.http;

import java.util.function.Supplier;

/// A page that is made when it is asked for.
///
/// @param isPublic whether everybody may see it, who he is or not
/// @param healthy whether it is answered by 200 and not by 503
/// @param body text in UTF-8
public record TextEndpoint(String contentType, boolean isPublic, Supplier<Boolean> healthy, Supplier<String> body) {

    /// A page that is always well.
    public static TextEndpoint of(String contentType, Supplier<String> body) {
        return new TextEndpoint(contentType, false, () -> true, body);
    }
}
