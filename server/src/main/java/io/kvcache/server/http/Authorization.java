package io.kvcache.server.http;

import io.kvcache.server.access.AuthResult;
import io.kvcache.server.access.ListenerAuth;
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

    private final ListenerAuth door;

    Authorization(ListenerAuth door) {
        this.door = door;
    }

    /// A header by which a connection has come in: it is not asked for again, so that guesses from the same address,
    /// which close the door to all others from there, do not end what goes on.
    private record Shown(String header, AuthResult verdict, Object moment) {}

    /// What one connection has shown. Used on the connection's loop, or by one log-in at a time.
    static final class Past {
        private volatile @Nullable Shown shown;
    }

    /// Who is meant by a request.
    ///
    /// @param past of its connection
    /// @param then told at once or later on another thread
    void of(HttpHeaders headers, SocketAddress from, Past past, Consumer<AuthResult> then) {
        String header = headers.get(HttpHeaderNames.AUTHORIZATION);
        if (header == null) {
            String everybody = door.anonymousTenant();
            then.accept(everybody == null ? AuthResult.MISSING : new AuthResult(AuthResult.Outcome.OK, everybody));
            return;
        }
        Shown shown = past.shown;
        if (shown != null && shown.header.equals(header) && door.isStillAuthenticated(shown.moment)) {
            then.accept(shown.verdict);
            return;
        }
        String pair = pair(header);
        int colon = pair == null ? -1 : pair.indexOf(':');
        if (pair == null || colon < 0) {
            then.accept(AuthResult.MISSING);
        } else {
            Object moment = door.credentialsVersion();
            door.authenticate(from, pair.substring(0, colon), pair.substring(colon + 1), verdict -> {
                past.shown = verdict.tenant() == null ? null : new Shown(header, verdict, moment);
                then.accept(verdict);
            });
        }
    }

    /// `user:password`, or null.
    private @Nullable String pair(String header) {
        int blank = header.indexOf(' ');
        String text = header.substring(blank + 1).strip();
        return switch (header.substring(0, Math.max(0, blank)).toLowerCase(Locale.ROOT)) {
            case "basic" -> decoded(text);
            case "bearer" -> text.indexOf(':') < 0 ? door.defaultUser() + ":" + text : text;
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
