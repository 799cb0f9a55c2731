package io.kvcache.server.resp;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/// CLIENT and its subcommands, as far as one connection speaks of itself.
final class ClientCommand {

    private final RespContext context;

    ClientCommand(RespContext context) {
        this.context = context;
    }

    void run(RespSession session, Request request, Replies out) throws CommandException {
        String sub = request.word(1);
        switch (sub) {
            case "ID" -> out.integer(session.connection().id());
            case "GETNAME" -> {
                if (session.name().isEmpty()) {
                    out.nil();
                } else {
                    out.bulk(session.name());
                }
            }
            case "SETNAME" -> {
                require(request, 3);
                session.name(name(request.bytes(2)));
                out.ok();
            }
            case "SETINFO" -> {
                require(request, 4);
                name(request.bytes(3));
                out.ok();
            }
            case "INFO" -> out.verbatim(describe(session, out));
            case "NO-EVICT", "NO-TOUCH" -> {
                require(request, 3);
                out.ok();
            }
            case "REPLY" -> {
                require(request, 3);
                if (!request.word(2).equals("ON")) {
                    throw new CommandException("ERR CLIENT REPLY takes ON here");
                }
                out.ok();
            }
            default ->
                throw new CommandException("ERR unknown subcommand '" + request.text(1)
                        + "'. CLIENT takes ID, GETNAME, SETNAME, SETINFO, INFO, NO-EVICT, NO-TOUCH, REPLY ON.");
        }
    }

    private static void require(Request request, int count) throws CommandException {
        if (request.count() != count) {
            throw new CommandException("ERR wrong number of arguments for 'client|" + request.text(1) + "' command");
        }
    }

    /// A client's name: no blanks, nothing that is not printed.
    static String name(byte[] asked) throws CommandException {
        for (byte each : asked) {
            if (each < '!' || each > '~') {
                throw new CommandException("ERR Client names cannot contain spaces, newlines or special characters.");
            }
        }
        return new String(asked, StandardCharsets.US_ASCII);
    }

    private String describe(RespSession session, Replies out) {
        long age = TimeUnit.NANOSECONDS.toSeconds(
                context.clock().nanos() - session.connection().sinceNanos());
        return "id=%d addr=%s laddr=%s name=%s age=%d db=0 resp=%d\n"
                .formatted(
                        session.connection().id(),
                        text(session.connection().channel().remoteAddress()),
                        text(session.connection().channel().localAddress()),
                        session.name(),
                        age,
                        out.version());
    }

    private static String text(Object address) {
        String text = String.valueOf(address);
        return text.startsWith("/") ? text.substring(1) : text;
    }
}
