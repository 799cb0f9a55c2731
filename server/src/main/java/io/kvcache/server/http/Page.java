package io.kvcache.server.http;

import java.util.function.Supplier;

/// A page that is made when it is asked for.
///
/// @param open whether everybody may see it, who he is or not
/// @param ok whether it is answered by 200 and not by 503
/// @param body text in UTF-8
public record Page(String contentType, boolean open, Supplier<Boolean> ok, Supplier<String> body) {

    /// A page that is always well.
    public static Page of(String contentType, Supplier<String> body) {
        return new Page(contentType, false, () -> true, body);
    }
}
