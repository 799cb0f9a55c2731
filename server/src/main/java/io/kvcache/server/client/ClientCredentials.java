package io.kvcache.server.client;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/// Who a client says it is.
///
/// @param user null for the one that the listener takes a password alone for
public record ClientCredentials(@Nullable String user, String password) {

    /// The command that says so over Redis' protocol.
    String[] authCommand() {
        return user == null ? new String[] {"AUTH", password} : new String[] {"AUTH", user, password};
    }

    /// The header that says so over HTTP.
    String authorizationHeader() {
        if (user == null) {
            return "Bearer " + password;
        }
        byte[] pair = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
        return "Basic " + Base64.getEncoder().encodeToString(pair);
    }

    /// Without the password, as it may end up in a log.
    @Override
    public String toString() {
        return "Login[" + (user == null ? "usual user" : user) + "]";
    }
}
