package io.kvcache.server.http;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Authenticates requests by `Basic`, or by `Bearer` with `user:password` or with the password of the listener's
/// usual user.
final class HttpAuthenticator {

    private final ListenerAuth listenerAuth;

    HttpAuthenticator(ListenerAuth listenerAuth) {
        this.listenerAuth = listenerAuth;
    }

    /// A header by which a connection has come in: it is not asked for again, so that guesses from the same
    /// address, which close the door to all others from there, do not end what goes on.
    private record VerifiedHeader(String header, AuthResult authResult, Object credentialsVersion) {}

    /// The credentials that one connection has shown. Used on the connection's loop, or by one log-in at a time.
    static final class ConnectionAuth {
        private volatile @Nullable VerifiedHeader verifiedHeader;
    }

    /// Finds the tenant of a request.
    ///
    /// @param connectionAuth of its connection
    /// @param then told at once or later on another thread
    void authenticate(
            HttpHeaders headers, SocketAddress from, ConnectionAuth connectionAuth, Consumer<AuthResult> then) {
        String header = headers.get(HttpHeaderNames.AUTHORIZATION);
        if (header == null) {
            String anonymous = listenerAuth.anonymousTenant();
            then.accept(anonymous == null ? AuthResult.MISSING : new AuthResult(AuthResult.Outcome.OK, anonymous));
            return;
        }
        VerifiedHeader verifiedHeader = connectionAuth.verifiedHeader;
        if (verifiedHeader != null
                && verifiedHeader.header.equals(header)
                && listenerAuth.isStillAuthenticated(verifiedHeader.credentialsVersion)) {
            then.accept(verifiedHeader.authResult);
            return;
        }
        String pair = userAndPassword(header);
        int colon = pair == null ? -1 : pair.indexOf(':');
        if (pair == null || colon < 0) {
            then.accept(AuthResult.MISSING);
        } else {
            Object moment = listenerAuth.credentialsVersion();
            listenerAuth.authenticate(from, pair.substring(0, colon), pair.substring(colon + 1), authResult -> {
                connectionAuth.verifiedHeader =
                        authResult.tenant() == null ? null : new VerifiedHeader(header, authResult, moment);
                then.accept(authResult);
            });
        }
    }

    /// `user:password`, or null.
    private @Nullable String userAndPassword(String header) {
        int blank = header.indexOf(' ');
        String text = header.substring(blank + 1).strip();
        return switch (header.substring(0, Math.max(0, blank)).toLowerCase(Locale.ROOT)) {
            case "basic" -> decodeBase64(text);
            case "bearer" -> text.indexOf(':') < 0 ? listenerAuth.defaultUser() + ":" + text : text;
            default -> null;
        };
    }

    private static @Nullable String decodeBase64(String base64) {
        try {
            return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }
}
