package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Set;

/// A client that looks at the server.
///
/// @param tenant as whom it has authenticated
/// @param administrator whether it sees what is of all tenants
/// @param mayChange whether it may drop blocks of those that it sees
public record Viewer(String tenant, boolean administrator, boolean mayChange) {

    /// Returns whether it sees what is of a tenant.
    public boolean sees(String other) {
        return administrator || tenant.equals(other);
    }

    /// Refuses what only an administrator may see.
    ///
    /// @param reason why this client may not, without a full stop
    public static HttpRequestHandler administratorsOnly(String reason) {
        return ProblemDetails.withType(
                        HttpResponseStatus.FORBIDDEN,
                        "administrators-only",
                        reason + "; admin: true at a tenant in the settings makes its clients administrators, as are"
                                + " those of a listener on loopback without authentication")
                .toHandler();
    }

    /// The rules of one listener.
    ///
    /// @param everyone whether all its clients are administrators, as those of a listener on loopback without
    ///     authentication are
    /// @param administrators tenants that are
    /// @param readOnly whether its clients may change nothing
    public record Rules(boolean everyone, Set<String> administrators, boolean readOnly) {

        /// All clients are administrators.
        public static final Rules OF_OPERATORS = new Rules(true, Set.of(), false);

        public Rules {
            administrators = Set.copyOf(administrators);
        }

        /// The viewer that a client of a tenant is.
        public Viewer viewer(String tenant) {
            return new Viewer(tenant, everyone || administrators.contains(tenant), !readOnly);
        }
    }
}
