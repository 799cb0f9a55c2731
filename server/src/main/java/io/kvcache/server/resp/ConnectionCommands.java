package io.kvcache.server.resp;

import java.util.List;

/// What a client says to get to know the server, and to leave it.
final class ConnectionCommands {

    /// Of Redis, whose commands are spoken here; clients choose features by it.
    static final String REDIS_VERSION = "7.2.0";

    private static final String NO_PASSWORD =
            "ERR AUTH <password> called without any password configured for the default user."
                    + " Are you sure your configuration is correct?";
    private static final String WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";

    private final RespContext context;

    ConnectionCommands(RespContext context) {
        this.context = context;
    }

    List<CommandSpec> commands() {
        CommandSpec.Places none = CommandSpec.Places.NONE;
        return List.of(
                CommandSpec.of("HELLO", -1, "noscript fast", none, this::hello),
                CommandSpec.of("AUTH", -2, "noscript fast", none, ConnectionCommands::auth),
                CommandSpec.of("PING", -1, "fast", none, ConnectionCommands::ping),
                CommandSpec.of("ECHO", 2, "fast", none, (session, request, out) -> out.bulk(request.bytes(1))),
                CommandSpec.of("SELECT", 2, "fast", none, ConnectionCommands::select),
                CommandSpec.of("CLIENT", -2, "noscript", none, new ClientCommand(context)::run),
                CommandSpec.of("RESET", 1, "noscript fast", none, ConnectionCommands::reset),
                CommandSpec.of("QUIT", -1, "noscript fast", none, (session, request, out) -> {
                    out.ok();
                    session.quit();
                }));
    }

    private void hello(RespSession session, Request request, Replies out) throws CommandException {
        int version = out.version();
        String name = session.name();
        if (request.count() > 1) {
            version = version(request);
        }
        for (int i = 2; i < request.count(); i++) {
            String word = request.word(i);
            if (word.equals("AUTH") && i + 2 < request.count()) {
                checkUser(request.text(i + 1));
                i += 2;
            } else if (word.equals("SETNAME") && i + 1 < request.count()) {
                name = ClientCommand.name(request.bytes(i + 1));
                i++;
            } else {
                throw new CommandException("ERR Syntax error in HELLO option '" + request.text(i) + "'");
            }
        }
        session.name(name);
        out.version(version);
        greet(session, out);
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
        out.bulk(context.version());
    }

    /// As Redis without a password: the default user may say any, and a password alone is a mistake.
    private static void auth(RespSession session, Request request, Replies out) throws CommandException {
        switch (request.count()) {
            case 2 -> throw new CommandException(NO_PASSWORD);
            case 3 -> {
                checkUser(request.text(1));
                out.ok();
            }
            default -> throw new CommandException(CommandException.SYNTAX);
        }
    }

    private static void checkUser(String user) throws CommandException {
        if (!user.equals("default")) {
            throw new CommandException(WRONG_PASSWORD);
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
        session.name("");
        out.version(2);
        out.simple("RESET");
    }
}
