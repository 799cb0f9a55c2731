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

    void run(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        String sub = request.argumentUpperCase(1);
        switch (sub) {
            case "ID" -> out.writeInteger(session.connection().id());
            case "GETNAME" -> {
                if (session.name().isEmpty()) {
                    out.writeNull();
                } else {
                    out.writeBulk(session.name());
                }
            }
            case "SETNAME" -> {
                require(request, 3);
                session.name(parseName(request.argument(2)));
                out.writeOk();
            }
            case "SETINFO" -> setInfo(session, request, out);
            case "INFO" -> out.writeVerbatim(clients.format(List.of(session.connection())));
            case "LIST" -> out.writeVerbatim(clients.format(matching(filter.forList(request))));
            case "KILL" -> kill(session, request, out);
            case "GETREDIR" -> out.writeInteger(-1);
            case "NO-EVICT", "NO-TOUCH" -> {
                require(request, 3);
                if (!request.argumentUpperCase(2).equals("ON")
                        && !request.argumentUpperCase(2).equals("OFF")) {
                    throw new CommandException(CommandException.SYNTAX);
                }
                out.writeOk(); // No client is ever closed for its memory alone, and every read counts as a use.
            }
            case "REPLY" -> {
                require(request, 3);
                if (!request.argumentUpperCase(2).equals("ON")) {
                    throw new CommandException("ERR CLIENT REPLY takes ON here");
                }
                out.writeOk();
            }
            default ->
                throw new CommandException("ERR unknown subcommand '" + request.argumentText(1)
                        + "'. CLIENT takes ID, GETNAME, SETNAME, SETINFO, INFO, LIST, KILL, GETREDIR, NO-EVICT,"
                        + " NO-TOUCH, REPLY ON.");
        }
    }

    private List<Connection> matching(Predicate<Connection> meant) {
        return clients.visible().stream().filter(meant).toList();
    }

    private static void setInfo(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        require(request, 4);
        String value = parseName(request.argument(3));
        switch (request.argumentUpperCase(2)) {
            case "LIB-NAME" ->
                session.setClientInfo(session.connection().clientInfo().withLibrary(value));
            case "LIB-VER" ->
                session.setClientInfo(session.connection().clientInfo().withLibraryVersion(value));
            default -> throw new CommandException("ERR Unrecognized option '" + request.argumentText(2) + "'");
        }
        out.writeOk();
    }

    /// `CLIENT KILL address` ends that one, whoever it is; `CLIENT KILL filter value ...` says how many it has ended.
    private void kill(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        if (request.count() < 3) {
            throw new CommandException("ERR wrong number of arguments for 'client|kill' command");
        }
        boolean byAddress = request.count() == 3;
        String address = request.argumentText(2);
        List<Connection> ended = matching(
                byAddress
                        ? each -> ClientList.remoteAddress(each).equals(address)
                        : filter.forKill(request, session.connection()));
        if (byAddress && ended.isEmpty()) {
            throw new CommandException("ERR No such client");
        }
        for (Connection each : ended) {
            if (each.id() == session.connection().id()) {
                session.closeAfterReply(CloseReason.KILLED); // once it has its reply
            } else {
                each.close(CloseReason.KILLED);
            }
        }
        if (byAddress) {
            out.writeOk();
        } else {
            out.writeInteger(ended.size());
        }
    }

    private static void require(RespRequest request, int count) throws CommandException {
        if (request.count() != count) {
            throw new CommandException(
                    "ERR wrong number of arguments for 'client|" + request.argumentText(1) + "' command");
        }
    }

    /// A client's name: no blanks, nothing that is not printed.
    static String parseName(byte[] asked) throws CommandException {
        for (byte each : asked) {
            if (each < '!' || each > '~') {
                throw new CommandException("ERR Client names cannot contain spaces, newlines or special characters.");
            }
        }
        return new String(asked, StandardCharsets.US_ASCII);
    }
}
