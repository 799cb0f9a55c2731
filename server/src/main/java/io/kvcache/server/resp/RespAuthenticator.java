package io.kvcache.server.resp;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.util.HashMap;
import java.util.Map;

/// Logs clients in with Redis' commands, and gives each the commands of its tenant.
final class RespAuthenticator {

    private static final String NO_PASSWORD =
            "ERR AUTH <password> called without any password configured for the default user."
                    + " Are you sure your configuration is correct?";
    private static final String WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";
    private static final String TOO_MANY_ATTEMPTS = "ERR too many failed attempts, try again later";

    private final ListenerAuth listenerAuth;
    private final RespStats stats;
    private final CommandTable preAuth;
    private final Map<String, CommandTable> tables = new HashMap<>();

    RespAuthenticator(ListenerAuth listenerAuth, Map<String, RespContext> tenants, RespStats stats) {
        this.listenerAuth = listenerAuth;
        this.stats = stats;
        String version = tenants.values().stream()
                .map(each -> each.serverInfo().version())
                .findAny()
                .orElse("");
        String mode = tenants.values().stream().map(RespContext::mode).findAny().orElse("standalone");
        preAuth = CommandTable.preAuth(new ConnectionCommands(version, mode, this).preAuthCommands(), stats);
        tenants.forEach((name, context) -> tables.put(name, CommandTable.of(context, this, stats)));
    }

    /// The commands of a client that has not logged in.
    CommandTable initialTable() {
        String anonymous = listenerAuth.anonymousTenant();
        return anonymous == null ? preAuth : ofTenant(anonymous);
    }

    private CommandTable ofTenant(String tenant) {
        return tables.getOrDefault(tenant, preAuth);
    }

    /// A user and his password.
    record UserPassword(String user, String password) {
        @Override
        public String toString() {
            return user; // a password is never shown
        }
    }

    @SuppressWarnings("ReferenceEquality") // there is one of each
    boolean isAuthenticated(RespSession session) {
        return session.commands() != preAuth;
    }

    /// `AUTH password`.
    void authenticatePassword(RespSession session, String password, RespEncoder out, Runnable in)
            throws CommandException {
        if (listenerAuth.anonymousTenant() != null && !listenerAuth.hasUser(listenerAuth.defaultUser())) {
            throw new CommandException(NO_PASSWORD);
        }
        authenticateUser(session, new UserPassword(listenerAuth.defaultUser(), password), out, in);
    }

    /// `AUTH user password`. As with Redis, the default user may send any password where none is required.
    void authenticateUser(RespSession session, UserPassword userPassword, RespEncoder out, Runnable in) {
        boolean any = listenerAuth.anonymousTenant() != null
                && userPassword.user().equals(TenantConfig.DEFAULT)
                && !listenerAuth.hasUser(TenantConfig.DEFAULT);
        if (any) {
            session.resetTenant();
            in.run();
            return;
        }
        session.handler()
                .<AuthResult>await(
                        then -> listenerAuth.authenticate(
                                session.connection().channel().remoteAddress(),
                                userPassword.user(),
                                userPassword.password(),
                                then),
                        authResult -> {
                            if (authResult.tenant() != null) {
                                session.enterTenant(ofTenant(authResult.tenant()));
                                in.run();
                            } else {
                                stats.errors.increment();
                                out.writeError(
                                        authResult.outcome() == AuthResult.Outcome.THROTTLED
                                                ? TOO_MANY_ATTEMPTS
                                                : WRONG_PASSWORD);
                            }
                        },
                        _ -> {});
    }
}
