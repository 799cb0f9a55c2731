package io.kvcache.server.resp;

import io.kvcache.server.access.AuthResult;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.config.TenantConfig;

/// Lets a client say who it is, in Redis' words.
final class Login {

    private static final String NO_PASSWORD =
            "ERR AUTH <password> called without any password configured for the default user."
                    + " Are you sure your configuration is correct?";
    private static final String WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";
    private static final String LATER = "ERR too many failed attempts, try again later";

    private final ListenerAuth door;
    private final Entrance entrance;
    private final RespStats stats;

    Login(ListenerAuth door, Entrance entrance, RespStats stats) {
        this.door = door;
        this.entrance = entrance;
        this.stats = stats;
    }

    /// A user and his password.
    record Pair(String user, String password) {
        @Override
        public String toString() {
            return user; // a password is never shown
        }
    }

    boolean isIn(RespSession session) {
        return !entrance.isBefore(session.commands());
    }

    /// `AUTH password`.
    void password(RespSession session, String password, Replies out, Runnable in) throws CommandException {
        if (door.anonymousTenant() != null && !door.hasUser(door.defaultUser())) {
            throw new CommandException(NO_PASSWORD);
        }
        user(session, new Pair(door.defaultUser(), password), out, in);
    }

    /// `AUTH user password`. As with Redis, the default user may say any password where nobody is asked for one.
    void user(RespSession session, Pair pair, Replies out, Runnable in) {
        boolean any = door.anonymousTenant() != null
                && pair.user().equals(TenantConfig.DEFAULT)
                && !door.hasUser(TenantConfig.DEFAULT);
        if (any) {
            session.leave();
            in.run();
            return;
        }
        session.<AuthResult>awaitAnswer(
                then -> door.authenticate(
                        session.connection().channel().remoteAddress(), pair.user(), pair.password(), then),
                verdict -> {
                    if (verdict.tenant() != null) {
                        session.enter(entrance.of(verdict.tenant()));
                        in.run();
                    } else {
                        stats.errors.increment();
                        out.error(verdict.outcome() == AuthResult.Outcome.THROTTLED ? LATER : WRONG_PASSWORD);
                    }
                });
    }
}
