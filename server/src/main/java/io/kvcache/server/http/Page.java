package io.kvcache.server.http;

import java.util.function.Supplier;

/// A page that is made when it is asked for.
///
/// @param ok whether it is answered by 200 and not by 503
/// @param body text in UTF-8
public record Page(String contentType, Supplier<Boolean> ok, Supplier<String> body) {

    /// A page that is always well.
    public static Page of(String contentType, Supplier<String> body) {
        return new Page(contentType, () -> true, body);
    }
}
