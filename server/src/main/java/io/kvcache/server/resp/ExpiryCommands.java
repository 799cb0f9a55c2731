package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// EXPIRE and what asks for it.
final class ExpiryCommands {

    private static final long NO_KEY = -2;
    private static final long NO_EXPIRY = -1;

    private final KeyspaceRouter keyspaceRouter;

    ExpiryCommands(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        return List.of(
                setterSpec("EXPIRE", "EX"),
                setterSpec("PEXPIRE", "PX"),
                setterSpec("EXPIREAT", "EXAT"),
                setterSpec("PEXPIREAT", "PXAT"),
                CommandSpec.of("PERSIST", 2, "write fast", CommandSpec.ArgumentPositions.FIRST, this::persist),
                querySpec(
                        "TTL",
                        info -> (info.expiresAtMillis()
                                        - keyspaceRouter.ownKeyspace().nowMillis()
                                        + 500)
                                / 1000),
                querySpec(
                        "PTTL",
                        info -> info.expiresAtMillis()
                                - keyspaceRouter.ownKeyspace().nowMillis()),
                querySpec("EXPIRETIME", info -> info.expiresAtMillis() / 1000),
                querySpec("PEXPIRETIME", KeyInfo::expiresAtMillis));
    }

    private CommandSpec setterSpec(String name, String unit) {
        return CommandSpec.of(
                name,
                -3,
                "write fast",
                CommandSpec.ArgumentPositions.FIRST,
                (session, request, out) -> expire(unit, request, out));
    }

    private interface ReplyValue {
        long from(KeyInfo info);
    }

    private CommandSpec querySpec(String name, ReplyValue replyValue) {
        return CommandSpec.of(
                name, 2, "readonly fast", CommandSpec.ArgumentPositions.FIRST, (session, request, out) -> {
                    KeyInfo info = find(request.argument(1));
                    if (info == null) {
                        out.writeInteger(NO_KEY);
                    } else {
                        out.writeInteger(info.expiresAtMillis() == 0 ? NO_EXPIRY : Math.max(0, replyValue.from(info)));
                    }
                });
    }

    private @Nullable KeyInfo find(byte[] key) {
        return Keyspace.isValidKey(key) ? keyspaceRouter.of(key).info(key) : null;
    }

    private void expire(String unit, RespRequest request, RespEncoder out) throws CommandException {
        Conditions conditions = Conditions.parse(request);
        long now = keyspaceRouter.ownKeyspace().nowMillis();
        long at = Math.max(
                1,
                ExpiryParser.parseAllowingPast(
                        unit, request.argumentLong(2), now, request.name().toLowerCase(Locale.ROOT)));
        byte[] key = request.argument(1);
        Keyspace keyspace = keyspaceRouter.of(key);
        KeyInfo info = find(key);
        if (info == null || !conditions.allow(info.expiresAtMillis(), at)) {
            out.writeInteger(0);
        } else if (at <= now) {
            out.writeInteger(keyspace.delete(key) ? 1 : 0);
        } else {
            out.writeInteger(keyspace.expireAt(key, at) ? 1 : 0);
        }
    }

    /// What a key's time to expire must be now for another to take its place. A key that never expires counts as one
    /// that
    /// expires later than any other.
    private record Conditions(boolean nx, boolean xx, boolean gt, boolean lt) {

        /// @throws CommandException when the request has others, or some that exclude each other
        static Conditions parse(RespRequest request) throws CommandException {
            boolean nx = false;
            boolean xx = false;
            boolean gt = false;
            boolean lt = false;
            for (int i = 3; i < request.count(); i++) {
                switch (request.argumentUpperCase(i)) {
                    case "NX" -> nx = true;
                    case "XX" -> xx = true;
                    case "GT" -> gt = true;
                    case "LT" -> lt = true;
                    default -> throw new CommandException("ERR Unsupported option " + request.argumentText(i));
                }
            }
            if (nx && (xx || gt || lt)) {
                throw new CommandException("ERR NX and XX, GT or LT options at the same time are not compatible");
            }
            if (gt && lt) {
                throw new CommandException("ERR GT and LT options at the same time are not compatible");
            }
            return new Conditions(nx, xx, gt, lt);
        }

        boolean allow(long before, long at) {
            boolean never = before == 0;
            return (!nx || never)
                    && (!xx || !never)
                    && (!gt || (!never && at > before))
                    && (!lt || never || at < before);
        }
    }

    private void persist(RespSession session, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(1);
        KeyInfo info = find(key);
        boolean done = info != null
                && info.expiresAtMillis() != 0
                && keyspaceRouter.of(key).expireAt(key, 0);
        out.writeInteger(done ? 1 : 0);
    }

    /// Times as commands give them.
    static final class ExpiryParser {

        /// The year 10889: far enough, and adding to it does not overflow.
        private static final long MAX_MILLIS = 1L << 48;

        private ExpiryParser() {}

        /// Milliseconds since the epoch.
        ///
        /// @param unit EX or PX for a time from now, EXAT or PXAT for a moment; seconds or milliseconds
        /// @throws CommandException when it is not positive or too far away
        static long parse(String unit, long amount, long nowMillis, String command) throws CommandException {
            if (amount <= 0) {
                throw invalid(command);
            }
            return parseAllowingPast(unit, amount, nowMillis, command);
        }

        /// As [#parse], and takes moments that have passed, for EXPIRE.
        static long parseAllowingPast(String unit, long amount, long nowMillis, String command)
                throws CommandException {
            boolean seconds = unit.startsWith("EX");
            long most = seconds ? MAX_MILLIS / 1000 : MAX_MILLIS;
            if (amount > most || amount < -most) {
                throw invalid(command);
            }
            long millis = seconds ? amount * 1000 : amount;
            return unit.endsWith("AT") ? millis : nowMillis + millis;
        }

        private static CommandException invalid(String command) {
            return new CommandException("ERR invalid expire time in '" + command + "' command");
        }
    }
}
