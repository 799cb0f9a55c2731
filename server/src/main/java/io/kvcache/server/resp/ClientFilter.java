package io.kvcache.server.resp;

import io.kvcache.server.net.Connection;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;

/// Which of the connections that it sees a client means.
final class ClientFilter {

    private static final Set<String> ABSENT_TYPES = Set.of("MASTER", "REPLICA", "SLAVE", "PUBSUB");

    private final ClientList clients;

    ClientFilter(ClientList clients) {
        this.clients = clients;
    }

    /// Of `CLIENT LIST [TYPE type] [ID id ...]`.
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

    /// Of `CLIENT KILL` with filters, all of which have to hold: `ID`, `ADDR`, `LADDR`, `USER`, `TYPE`, `MAXAGE`, and
    /// `SKIPME`, which is `yes` unless it is said.
    ///
    /// @param asking who says so
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

    /// All are normal clients: there are no replicas, and nobody subscribes.
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
