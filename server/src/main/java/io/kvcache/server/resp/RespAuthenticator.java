package io.kvcache.server.resp;

import io.kvcache.server.resp.RespProtocol.RespStats;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.config.TenantConfig;

/// Lets a client say who it is, in Redis' words.
final class RespAuthenticator {

    private static final String NO_PASSWORD =
            "ERR AUTH <password> called without any password configured for the default user."
                    + " Are you sure your configuration is correct?";
    private static final String WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";
    private static final String TOO_MANY_ATTEMPTS = "ERR too many failed attempts, try again later";

    private final ListenerAuth listenerAuth;
    private final CommandTables commandTables;
    private final RespStats stats;

    RespAuthenticator(ListenerAuth listenerAuth, CommandTables commandTables, RespStats stats) {
        this.listenerAuth = listenerAuth;
        this.commandTables = commandTables;
        this.stats = stats;
    }

    /// A user and his password.
    record UserPassword(String user, String password) {
        @Override
        public String toString() {
            return user; // a password is never shown
        }
    }

    boolean isAuthenticated(RespClientState session) {
        return !commandTables.isPreAuth(session.commands());
    }

    /// `AUTH password`.
    void authenticatePassword(RespClientState session, String password, RespEncoder out, Runnable in)
            throws CommandException {
        if (listenerAuth.anonymousTenant() != null && !listenerAuth.hasUser(listenerAuth.defaultUser())) {
            throw new CommandException(NO_PASSWORD);
        }
        authenticateUser(session, new UserPassword(listenerAuth.defaultUser(), password), out, in);
    }

    /// `AUTH user password`. As with Redis, the default user may say any password where nobody is asked for one.
    void authenticateUser(RespClientState session, UserPassword userPassword, RespEncoder out, Runnable in) {
        boolean any = listenerAuth.anonymousTenant() != null
                && userPassword.user().equals(TenantConfig.DEFAULT)
                && !listenerAuth.hasUser(TenantConfig.DEFAULT);
        if (any) {
            session.resetTenant();
            in.run();
            return;
        }
        session.<AuthResult>awaitCallback(
                then -> listenerAuth.authenticate(
                        session.connection().channel().remoteAddress(),
                        userPassword.user(),
                        userPassword.password(),
                        then),
                authResult -> {
                    if (authResult.tenant() != null) {
                        session.enterTenant(commandTables.forTenant(authResult.tenant()));
                        in.run();
                    } else {
                        stats.errors.increment();
                        out.writeError(
                                authResult.outcome() == AuthResult.Outcome.THROTTLED
                                        ? TOO_MANY_ATTEMPTS
                                        : WRONG_PASSWORD);
                    }
                });
    }
}
