package io.kvcache.server.resp;

import io.kvcache.server.net.Connection.CloseReason;
import java.util.List;
import java.util.Set;

/// The commands by which a client introduces itself, asks about the server, and leaves.
final class ConnectionCommands {

    /// The Redis version whose commands the server speaks; clients choose features by it.
    static final String REDIS_VERSION = "7.2.0";

    private final String version;
    private final String mode;
    private final RespAuthenticator respAuthenticator;

    /// @param mode `standalone` or `cluster`
    ConnectionCommands(String version, String mode, RespAuthenticator respAuthenticator) {
        this.version = version;
        this.mode = mode;
        this.respAuthenticator = respAuthenticator;
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
        return List.of(
                CommandSpec.of("HELLO", -1, "noscript fast", none, this::hello),
                CommandSpec.of("AUTH", -2, "noscript fast", none, this::auth),
                CommandSpec.of("PING", -1, "fast", none, ConnectionCommands::ping),
                CommandSpec.of("ECHO", 2, "fast", none, (session, request, out) -> out.writeBulk(request.argument(1))),
                CommandSpec.of("SELECT", 2, "fast", none, ConnectionCommands::select),
                CommandSpec.of("RESET", 1, "noscript fast", none, ConnectionCommands::reset),
                CommandSpec.of("QUIT", -1, "noscript fast", none, (session, request, out) -> {
                    out.writeOk();
                    session.closeAfterReply(CloseReason.QUIT);
                }));
    }

    /// The commands of an unauthenticated client: authentication and good-bye.
    List<CommandSpec> preAuthCommands() {
        return commands().stream()
                .filter(spec -> Set.of("HELLO", "AUTH", "RESET", "QUIT").contains(spec.name()))
                .toList();
    }

    private void hello(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        int version = request.count() > 1 ? version(request) : out.protocolVersion();
        String name = session.name();
        int user = 0;
        for (int i = 2; i < request.count(); i++) {
            String word = request.argumentUpperCase(i);
            if (word.equals("AUTH") && i + 2 < request.count()) {
                user = i + 1;
                i += 2;
            } else if (word.equals("SETNAME") && i + 1 < request.count()) {
                name = ClientCommand.parseName(request.argument(i + 1));
                i++;
            } else {
                throw new CommandException("ERR Syntax error in HELLO option '" + request.argumentText(i) + "'");
            }
        }
        String chosen = name;
        Runnable welcome = () -> {
            session.name(chosen);
            setVersion(session, out, version);
            replyHello(session, out);
        };
        if (user > 0) {
            respAuthenticator.authenticateUser(
                    session,
                    new RespAuthenticator.UserPassword(request.argumentText(user), request.argumentText(user + 1)),
                    out,
                    welcome);
        } else if (respAuthenticator.isAuthenticated(session)) {
            welcome.run();
        } else {
            throw new CommandException("NOAUTH HELLO must be called with the client already authenticated, otherwise"
                    + " the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select"
                    + " the RESP protocol version at the same time");
        }
    }

    private static int version(RespRequest request) throws CommandException {
        long asked;
        try {
            asked = request.argumentLong(1);
        } catch (CommandException _) {
            throw new CommandException("ERR Protocol version is not an integer or out of range");
        }
        if (asked != 2 && asked != 3) {
            throw new CommandException("NOPROTO unsupported protocol version");
        }
        return (int) asked;
    }

    private void replyHello(RespSession session, RespEncoder out) {
        out.beginMap(8);
        out.writeBulk("server");
        out.writeBulk("redis");
        out.writeBulk("version");
        out.writeBulk(REDIS_VERSION);
        out.writeBulk("proto");
        out.writeInteger(out.protocolVersion());
        out.writeBulk("id");
        out.writeInteger(session.connection().id());
        out.writeBulk("mode");
        out.writeBulk(mode);
        out.writeBulk("role");
        out.writeBulk("master");
        out.writeBulk("modules");
        out.beginArray(0);
        out.writeBulk("kvcache_version");
        out.writeBulk(version);
    }

    private void auth(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        switch (request.count()) {
            case 2 -> respAuthenticator.authenticatePassword(session, request.argumentText(1), out, out::writeOk);
            case 3 ->
                respAuthenticator.authenticateUser(
                        session,
                        new RespAuthenticator.UserPassword(request.argumentText(1), request.argumentText(2)),
                        out,
                        out::writeOk);
            default -> throw new CommandException(CommandException.SYNTAX);
        }
    }

    private static void ping(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        switch (request.count()) {
            case 1 -> out.writeSimple("PONG");
            case 2 -> out.writeBulk(request.argument(1));
            default -> throw new CommandException("ERR wrong number of arguments for 'ping' command");
        }
    }

    private static void select(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        if (request.argumentLong(1) != 0) {
            throw new CommandException("ERR DB index is out of range");
        }
        out.writeOk();
    }

    private static void reset(RespSession session, RespRequest request, RespEncoder out) {
        session.endTransaction();
        session.name("");
        session.resetTenant();
        setVersion(session, out, 2);
        out.writeSimple("RESET");
    }

    private static void setVersion(RespSession session, RespEncoder out, int version) {
        out.protocolVersion(version);
        session.setClientInfo(session.connection().clientInfo().withVersion(version));
    }
}
