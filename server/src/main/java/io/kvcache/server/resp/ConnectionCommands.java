package io.kvcache.server.resp;

import io.kvcache.server.net.CloseReason;
import java.util.List;
import java.util.Set;

/// What a client says to get to know the server, and to leave it.
final class ConnectionCommands {

    /// Of Redis, whose commands are spoken here; clients choose features by it.
    static final String REDIS_VERSION = "7.2.0";

    private final String version;
    private final Login login;

    ConnectionCommands(String version, Login login) {
        this.version = version;
        this.login = login;
    }

    List<CommandSpec> commands() {
        CommandSpec.Places none = CommandSpec.Places.NONE;
        return List.of(
                CommandSpec.of("HELLO", -1, "noscript fast", none, this::hello),
                CommandSpec.of("AUTH", -2, "noscript fast", none, this::auth),
                CommandSpec.of("PING", -1, "fast", none, ConnectionCommands::ping),
                CommandSpec.of("ECHO", 2, "fast", none, (session, request, out) -> out.bulk(request.bytes(1))),
                CommandSpec.of("SELECT", 2, "fast", none, ConnectionCommands::select),
                CommandSpec.of("RESET", 1, "noscript fast", none, ConnectionCommands::reset),
                CommandSpec.of("QUIT", -1, "noscript fast", none, (session, request, out) -> {
                    out.ok();
                    session.end(CloseReason.QUIT);
                }));
    }

    /// What a client may say before it has said who it is: no more than that, and good-bye.
    List<CommandSpec> beforeLogin() {
        return commands().stream()
                .filter(spec -> Set.of("HELLO", "AUTH", "RESET", "QUIT").contains(spec.name()))
                .toList();
    }

    private void hello(RespSession session, Request request, Replies out) throws CommandException {
        int version = request.count() > 1 ? version(request) : out.version();
        String name = session.name();
        int user = 0;
        for (int i = 2; i < request.count(); i++) {
            String word = request.word(i);
            if (word.equals("AUTH") && i + 2 < request.count()) {
                user = i + 1;
                i += 2;
            } else if (word.equals("SETNAME") && i + 1 < request.count()) {
                name = ClientCommand.name(request.bytes(i + 1));
                i++;
            } else {
                throw new CommandException("ERR Syntax error in HELLO option '" + request.text(i) + "'");
            }
        }
        String chosen = name;
        Runnable welcome = () -> {
            session.name(chosen);
            speak(session, out, version);
            greet(session, out);
        };
        if (user > 0) {
            login.user(session, new Login.Pair(request.text(user), request.text(user + 1)), out, welcome);
        } else if (login.isIn(session)) {
            welcome.run();
        } else {
            throw new CommandException("NOAUTH HELLO must be called with the client already authenticated, otherwise"
                    + " the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select"
                    + " the RESP protocol version at the same time");
        }
    }

    private static int version(Request request) throws CommandException {
        long asked;
        try {
            asked = request.integer(1);
        } catch (CommandException _) {
            throw new CommandException("ERR Protocol version is not an integer or out of range");
        }
        if (asked != 2 && asked != 3) {
            throw new CommandException("NOPROTO unsupported protocol version");
        }
        return (int) asked;
    }

    private void greet(RespSession session, Replies out) {
        out.map(8);
        out.bulk("server");
        out.bulk("redis");
        out.bulk("version");
        out.bulk(REDIS_VERSION);
        out.bulk("proto");
        out.integer(out.version());
        out.bulk("id");
        out.integer(session.connection().id());
        out.bulk("mode");
        out.bulk("standalone");
        out.bulk("role");
        out.bulk("master");
        out.bulk("modules");
        out.array(0);
        out.bulk("kvcache_version");
        out.bulk(version);
    }

    private void auth(RespSession session, Request request, Replies out) throws CommandException {
        switch (request.count()) {
            case 2 -> login.password(session, request.text(1), out, out::ok);
            case 3 -> login.user(session, new Login.Pair(request.text(1), request.text(2)), out, out::ok);
            default -> throw new CommandException(CommandException.SYNTAX);
        }
    }

    private static void ping(RespSession session, Request request, Replies out) throws CommandException {
        switch (request.count()) {
            case 1 -> out.simple("PONG");
            case 2 -> out.bulk(request.bytes(1));
            default -> throw new CommandException("ERR wrong number of arguments for 'ping' command");
        }
    }

    private static void select(RespSession session, Request request, Replies out) throws CommandException {
        if (request.integer(1) != 0) {
            throw new CommandException("ERR DB index is out of range");
        }
        out.ok();
    }

    private static void reset(RespSession session, Request request, Replies out) {
        session.transaction().end();
        session.name("");
        session.leave();
        speak(session, out, 2);
        out.simple("RESET");
    }

    private static void speak(RespSession session, Replies out, int version) {
        out.version(version);
        session.introduce(session.connection().clientInfo().withVersion(version));
    }
}
