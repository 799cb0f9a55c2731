package io.kvcache.server.access;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.net.SocketAddress;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The way in at one listener.
///
/// **Threads.** Any.
public final class ListenerAuth {

    private final PasswordAuthenticator passwordAuthenticator;
    private final @Nullable String boundTenant;
    private final boolean requiresAuth;
    private final String defaultUser;

    /// @param tenants all there are
    public ListenerAuth(
            ListenerAuthConfig entry, List<TenantConfig> tenants, PasswordAuthenticator passwordAuthenticator) {
        this.passwordAuthenticator = passwordAuthenticator;
        boundTenant = entry.tenant();
        requiresAuth = entry.auth();
        defaultUser = tenants.stream()
                .filter(each -> each.name().equals(boundTenant))
                .map(TenantConfig::user)
                .findFirst()
                .orElse(TenantConfig.DEFAULT);
    }

    /// The tenant of a client that has not authenticated, or null when it must authenticate.
    public @Nullable String anonymousTenant() {
        if (requiresAuth) {
            return null;
        }
        return boundTenant == null ? TenantConfig.DEFAULT : boundTenant;
    }

    /// The user that a password alone stands for: the user of the listener's tenant, or `default`.
    public String defaultUser() {
        return defaultUser;
    }

    /// Returns whether a user has a password.
    public boolean hasUser(String user) {
        return passwordAuthenticator.hasUser(user);
    }

    /// Authenticates a client.
    ///
    /// @param callback told the verdict, at once or later on another thread
    public void authenticate(SocketAddress from, String user, String password, Consumer<AuthResult> callback) {
        passwordAuthenticator.authenticate(
                from, user, password, authResult -> callback.accept(restrictToTenant(authResult, from, user)));
    }

    /// The passwords of this moment, for [#isStillAuthenticated].
    public Object credentialsVersion() {
        return passwordAuthenticator.credentialsVersion();
    }

    /// Returns whether a client's earlier log-in still holds, without checking its password again: the passwords
    /// have not been reloaded since. Counts as one more log-in.
    @SuppressWarnings("ReferenceEquality") // passwords that were read again are others, whatever they are
    public boolean isStillAuthenticated(Object credentialsVersion) {
        boolean still = credentialsVersion == passwordAuthenticator.credentialsVersion();
        if (still) {
            passwordAuthenticator.recordSuccess();
        }
        return still;
    }

    private AuthResult restrictToTenant(AuthResult authResult, SocketAddress from, String user) {
        if (authResult.tenant() == null) {
            if (authResult.outcome() == AuthResult.Outcome.THROTTLED) {
                passwordAuthenticator.failedLoginLog().log(from, user, "not checked, after too many wrong ones");
            } else if (authResult.outcome() == AuthResult.Outcome.DENIED) {
                passwordAuthenticator.failedLoginLog().log(from, user, "wrong user or password");
            }
            return authResult;
        }
        if (boundTenant != null && !boundTenant.equals(authResult.tenant())) {
            passwordAuthenticator.recordWrongListener();
            passwordAuthenticator.failedLoginLog().log(from, user, "the listener is of tenant " + boundTenant);
            return AuthResult.DENIED;
        }
        passwordAuthenticator.recordSuccess();
        return authResult;
    }
}
