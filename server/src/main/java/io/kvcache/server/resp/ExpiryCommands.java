package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// EXPIRE and what asks for it.
final class ExpiryCommands {

    private static final long ABSENT = -2;
    private static final long NEVER = -1;

    private final KeyspaceRouter reach;

    ExpiryCommands(KeyspaceRouter reach) {
        this.reach = reach;
    }

    List<CommandSpec> commands() {
        return List.of(
                setting("EXPIRE", "EX"),
                setting("PEXPIRE", "PX"),
                setting("EXPIREAT", "EXAT"),
                setting("PEXPIREAT", "PXAT"),
                CommandSpec.of("PERSIST", 2, "write fast", CommandSpec.Places.FIRST, this::persist),
                asking(
                        "TTL",
                        info -> (info.expiresAtMillis() - reach.ownKeyspace().nowMillis() + 500) / 1000),
                asking(
                        "PTTL",
                        info -> info.expiresAtMillis() - reach.ownKeyspace().nowMillis()),
                asking("EXPIRETIME", info -> info.expiresAtMillis() / 1000),
                asking("PEXPIRETIME", KeyInfo::expiresAtMillis));
    }

    private CommandSpec setting(String name, String unit) {
        return CommandSpec.of(
                name,
                -3,
                "write fast",
                CommandSpec.Places.FIRST,
                (session, request, out) -> expire(unit, request, out));
    }

    private interface Answer {
        long of(KeyInfo info);
    }

    private CommandSpec asking(String name, Answer answer) {
        return CommandSpec.of(name, 2, "readonly fast", CommandSpec.Places.FIRST, (session, request, out) -> {
            KeyInfo info = find(request.bytes(1));
            if (info == null) {
                out.integer(ABSENT);
            } else {
                out.integer(info.expiresAtMillis() == 0 ? NEVER : Math.max(0, answer.of(info)));
            }
        });
    }

    private @Nullable KeyInfo find(byte[] key) {
        return Keys.possible(key) ? reach.of(key).info(key) : null;
    }

    private void expire(String unit, Request request, Replies out) throws CommandException {
        long now = reach.ownKeyspace().nowMillis();
        long at = Math.max(
                1, Expiry.moment(unit, request.integer(2), now, request.name().toLowerCase(Locale.ROOT)));
        byte[] key = request.bytes(1);
        Keyspace keyspace = reach.of(key);
        KeyInfo info = find(key);
        if (info == null || !allowed(request, info.expiresAtMillis(), at)) {
            out.integer(0);
        } else if (at <= now) {
            out.integer(keyspace.delete(key) ? 1 : 0);
        } else {
            out.integer(keyspace.expireAt(key, at) ? 1 : 0);
        }
    }

    /// NX, XX, GT and LT. A key that never expires counts as one that expires later than any other.
    private static boolean allowed(Request request, long before, long at) throws CommandException {
        boolean allowed = true;
        for (int i = 3; i < request.count(); i++) {
            allowed &= switch (request.word(i)) {
                case "NX" -> before == 0;
                case "XX" -> before != 0;
                case "GT" -> before != 0 && at > before;
                case "LT" -> before == 0 || at < before;
                default -> throw new CommandException("ERR Unsupported option " + request.text(i));
            };
        }
        return allowed;
    }

    private void persist(RespSession session, Request request, Replies out) {
        byte[] key = request.bytes(1);
        KeyInfo info = find(key);
        boolean done =
                info != null && info.expiresAtMillis() != 0 && reach.of(key).expireAt(key, 0);
        out.integer(done ? 1 : 0);
    }
}
