package io.kvcache.server.resp;

import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connection;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Predicate;

/// CLIENT and its subcommands: what a client says of itself, and what it may know of others and do to them.
final class ClientCommand {

    private final ClientList clients;
    private final ClientFilter filter;

    ClientCommand(RespContext context) {
        clients = new ClientList(context);
        filter = new ClientFilter(clients);
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
            case "SETINFO" -> setInfo(session, request, out);
            case "INFO" -> out.verbatim(clients.text(List.of(session.connection())));
            case "LIST" -> out.verbatim(clients.text(seen(filter.listed(request))));
            case "KILL" -> kill(session, request, out);
            case "GETREDIR" -> out.integer(-1);
            case "NO-EVICT", "NO-TOUCH" -> {
                require(request, 3);
                if (!request.word(2).equals("ON") && !request.word(2).equals("OFF")) {
                    throw new CommandException(CommandException.SYNTAX);
                }
                out.ok(); // No client is ever closed for its memory alone, and every read counts as a use.
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
                        + "'. CLIENT takes ID, GETNAME, SETNAME, SETINFO, INFO, LIST, KILL, GETREDIR, NO-EVICT,"
                        + " NO-TOUCH, REPLY ON.");
        }
    }

    private List<Connection> seen(Predicate<Connection> meant) {
        return clients.seen().stream().filter(meant).toList();
    }

    private static void setInfo(RespSession session, Request request, Replies out) throws CommandException {
        require(request, 4);
        String value = name(request.bytes(3));
        switch (request.word(2)) {
            case "LIB-NAME" ->
                session.introduce(session.connection().clientInfo().withLibrary(value));
            case "LIB-VER" ->
                session.introduce(session.connection().clientInfo().withLibraryVersion(value));
            default -> throw new CommandException("ERR Unrecognized option '" + request.text(2) + "'");
        }
        out.ok();
    }

    /// `CLIENT KILL address` ends that one, whoever it is; `CLIENT KILL filter value ...` says how many it has ended.
    private void kill(RespSession session, Request request, Replies out) throws CommandException {
        if (request.count() < 3) {
            throw new CommandException("ERR wrong number of arguments for 'client|kill' command");
        }
        boolean byAddress = request.count() == 3;
        String address = request.text(2);
        List<Connection> ended = seen(
                byAddress
                        ? each -> ClientList.remote(each).equals(address)
                        : filter.killed(request, session.connection()));
        if (byAddress && ended.isEmpty()) {
            throw new CommandException("ERR No such client");
        }
        for (Connection each : ended) {
            if (each.id() == session.connection().id()) {
                session.end(CloseReason.KILLED); // once it has its reply
            } else {
                each.close(CloseReason.KILLED);
            }
        }
        if (byAddress) {
            out.ok();
        } else {
            out.integer(ended.size());
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
}
