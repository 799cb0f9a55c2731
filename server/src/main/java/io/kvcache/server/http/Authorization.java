package io.kvcache.server.http;

import io.kvcache.server.access.Door;
import io.kvcache.server.access.Verdict;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reads who a request says it is from: `Basic`, or `Bearer` with `user:password` or with the password of the
/// listener's usual user.
final class Authorization {

    private final Door door;

    Authorization(Door door) {
        this.door = door;
    }

    /// Who is meant by a request.
    ///
    /// @param then told at once or later on another thread
    void of(HttpHeaders headers, SocketAddress from, Consumer<Verdict> then) {
        String header = headers.get(HttpHeaderNames.AUTHORIZATION);
        if (header == null) {
            String everybody = door.everybody();
            then.accept(everybody == null ? Verdict.UNSAID : new Verdict(Verdict.Outcome.IN, everybody));
            return;
        }
        String pair = pair(header);
        int colon = pair == null ? -1 : pair.indexOf(':');
        if (pair == null || colon < 0) {
            then.accept(Verdict.UNSAID);
        } else {
            door.ask(from, pair.substring(0, colon), pair.substring(colon + 1), then);
        }
    }

    /// `user:password`, or null.
    private @Nullable String pair(String header) {
        int blank = header.indexOf(' ');
        String text = header.substring(blank + 1).strip();
        return switch (header.substring(0, Math.max(0, blank)).toLowerCase(Locale.ROOT)) {
            case "basic" -> decoded(text);
            case "bearer" -> text.indexOf(':') < 0 ? door.usualUser() + ":" + text : text;
            default -> null;
        };
    }

    private static @Nullable String decoded(String base64) {
        try {
            return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }
}
