package io.kvcache.server.resp;

import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.ClientInfo;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Protocol.ProtocolKind;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/// CLIENT and its subcommands: what a client says of itself, and what it may know of others and do to them.
final class ClientCommand {

    private final ClientList clients;
    private final ClientFilter filter;

    ClientCommand(RespContext context) {
        clients = new ClientList(context);
        filter = new ClientFilter(clients);
    }

    void run(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
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

    private static void setInfo(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
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

    /// `CLIENT KILL address` ends that one, whichever it is; `CLIENT KILL filter value ...` says how many it has
    /// ended.
    private void kill(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
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

    /// Selects among the connections that a client may see.
    private static final class ClientFilter {

        private static final Set<String> ABSENT_TYPES = Set.of("MASTER", "REPLICA", "SLAVE", "PUBSUB");

        private final ClientList clients;

        ClientFilter(ClientList clients) {
            this.clients = clients;
        }

        /// Parses `CLIENT LIST [TYPE type] [ID id ...]`.
        Predicate<Connection> forList(RespRequest request) throws CommandException {
            if (request.count() == 2) {
                return _ -> true;
            }
            if (request.count() < 4) {
                throw new CommandException(CommandException.SYNTAX);
            }
            return switch (request.argumentUpperCase(2)) {
                case "TYPE" -> {
                    if (request.count() > 4) {
                        throw new CommandException(CommandException.SYNTAX);
                    }
                    yield parseType(request, 3);
                }
                case "ID" -> parseIds(request);
                default -> throw new CommandException(CommandException.SYNTAX);
            };
        }

        /// Parses `CLIENT KILL` with filters, all of which must hold: `ID`, `ADDR`, `LADDR`, `USER`, `TYPE`,
        /// `MAXAGE`, and `SKIPME`, which is `yes` unless it is said.
        ///
        /// @param asking the client that asks
        Predicate<Connection> forKill(RespRequest request, Connection asking) throws CommandException {
            if (request.count() % 2 != 0) {
                throw new CommandException(CommandException.SYNTAX);
            }
            Predicate<Connection> meant = _ -> true;
            boolean skip = true;
            for (int i = 2; i < request.count(); i += 2) {
                if (request.argumentUpperCase(i).equals("SKIPME")) {
                    skip = parseYesNo(request.argumentUpperCase(i + 1));
                } else {
                    meant = meant.and(condition(request, i));
                }
            }
            long own = skip ? asking.id() : 0;
            return meant.and(each -> each.id() != own);
        }

        private Predicate<Connection> condition(RespRequest request, int at) throws CommandException {
            String value = request.argumentText(at + 1);
            return switch (request.argumentUpperCase(at)) {
                case "ID" -> {
                    long id = parseId(request, at + 1);
                    yield each -> each.id() == id;
                }
                case "ADDR" -> each -> ClientList.remoteAddress(each).equals(value);
                case "LADDR" -> each -> ClientList.localAddress(each).equals(value);
                case "USER" -> each -> each.clientInfo().tenant().equals(value);
                case "TYPE" -> parseType(request, at + 1);
                case "MAXAGE" -> {
                    long seconds = request.argumentLong(at + 1);
                    yield each -> clients.age(each) >= seconds;
                }
                default -> throw new CommandException(CommandException.SYNTAX);
            };
        }

        private static boolean parseYesNo(String word) throws CommandException {
            return switch (word) {
                case "YES" -> true;
                case "NO" -> false;
                default -> throw new CommandException(CommandException.SYNTAX);
            };
        }

        /// All are normal clients: there are neither replicas nor subscribers.
        private static Predicate<Connection> parseType(RespRequest request, int at) throws CommandException {
            String type = request.argumentUpperCase(at);
            if (!type.equals("NORMAL") && !ABSENT_TYPES.contains(type)) {
                throw new CommandException("ERR Unknown client type '" + type.toLowerCase(Locale.ROOT) + "'");
            }
            return _ -> type.equals("NORMAL");
        }

        private static Predicate<Connection> parseIds(RespRequest request) throws CommandException {
            Set<Long> ids = new HashSet<>();
            for (int i = 3; i < request.count(); i++) {
                ids.add(parseId(request, i));
            }
            return each -> ids.contains(each.id());
        }

        private static long parseId(RespRequest request, int at) throws CommandException {
            try {
                long id = request.argumentLong(at);
                if (id > 0) {
                    return id;
                }
            } catch (CommandException none) {
                throw new CommandException("ERR Invalid client ID");
            }
            throw new CommandException("ERR client-id should be greater than 0");
        }
    }

    /// The connections that a tenant's clients may see: those of the tenant; where there is no other one, all there
    /// are.
    static final class ClientList {

        private final RespContext context;

        ClientList(RespContext context) {
            this.context = context;
        }

        /// In the order in which they came.
        List<Connection> visible() {
            return context.connectionRegistry().openConnections().stream()
                    .filter(each ->
                            context.soleTenant() || each.clientInfo().tenant().equals(context.tenant()))
                    .toList();
        }

        /// A line for each, in the words of Redis 7.2, all of which programs look for; what there is not here is
        /// nought.
        String format(List<Connection> connections) {
            StringBuilder lines = new StringBuilder();
            for (Connection each : connections) {
                lines.append(formatLine(each)).append('\n');
            }
            return lines.toString();
        }

        private String formatLine(Connection connection) {
            ClientInfo said = connection.clientInfo();
            ProtocolKind protocol = connection.protocol();
            long unread = connection.unreadBytes();
            return ("id=%s addr=%s laddr=%s fd=-1 name=%s age=%s idle=%s flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0"
                            + " qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=%s tot-mem=%s events=r"
                            + " cmd=%s user=%s redir=-1 resp=%s lib-name=%s lib-ver=%s protocol=%s")
                    .formatted(
                            connection.id(),
                            remoteAddress(connection),
                            localAddress(connection),
                            said.name(),
                            age(connection),
                            seconds(connection.lastReadNanos()),
                            unread,
                            unread,
                            connection.lastRequest().isEmpty() ? "NULL" : connection.lastRequest(),
                            said.tenant(),
                            said.version(),
                            said.library(),
                            said.libraryVersion(),
                            protocol == null ? "unknown" : protocol.name().toLowerCase(Locale.ROOT));
        }

        /// Seconds since a connection was accepted.
        long age(Connection connection) {
            return seconds(connection.acceptedNanos());
        }

        private long seconds(long sinceNanos) {
            return TimeUnit.NANOSECONDS.toSeconds(Math.max(0, context.clock().nanos() - sinceNanos));
        }

        /// The client's address, as `CLIENT KILL` takes it.
        static String remoteAddress(Connection connection) {
            return format(connection.channel().remoteAddress());
        }

        /// The server's address, as `CLIENT KILL` takes it.
        static String localAddress(Connection connection) {
            return format(connection.channel().localAddress());
        }

        private static String format(SocketAddress address) {
            String text = String.valueOf(address);
            return text.substring(text.indexOf('/') + 1);
        }
    }
}
