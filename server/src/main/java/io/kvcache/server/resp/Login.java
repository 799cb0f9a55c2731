package io.kvcache.server.resp;

import io.kvcache.server.access.Door;
import io.kvcache.server.access.Verdict;
import io.kvcache.server.config.TenantConfig;

/// Lets a client say who it is, in Redis' words.
final class Login {

    private static final String NO_PASSWORD =
            "ERR AUTH <password> called without any password configured for the default user."
                    + " Are you sure your configuration is correct?";
    private static final String WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";
    private static final String LATER = "ERR too many failed attempts, try again later";

    private final Door door;
    private final Entrance entrance;
    private final RespStats stats;

    Login(Door door, Entrance entrance, RespStats stats) {
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
        if (door.everybody() != null && !door.knows(door.usualUser())) {
            throw new CommandException(NO_PASSWORD);
        }
        user(session, new Pair(door.usualUser(), password), out, in);
    }

    /// `AUTH user password`. As with Redis, the default user may say any password where nobody is asked for one.
    void user(RespSession session, Pair pair, Replies out, Runnable in) {
        boolean any = door.everybody() != null
                && pair.user().equals(TenantConfig.DEFAULT)
                && !door.knows(TenantConfig.DEFAULT);
        if (any) {
            session.leave();
            in.run();
            return;
        }
        session.<Verdict>awaitAnswer(
                then -> door.ask(session.connection().channel().remoteAddress(), pair.user(), pair.password(), then),
                verdict -> {
                    if (verdict.tenant() != null) {
                        session.enter(entrance.of(verdict.tenant()));
                        in.run();
                    } else {
                        stats.errors.increment();
                        out.error(verdict.outcome() == Verdict.Outcome.LATER ? LATER : WRONG_PASSWORD);
                    }
                });
    }
}
