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
    Predicate<Connection> listed(Request request) throws CommandException {
        if (request.count() == 2) {
            return _ -> true;
        }
        if (request.count() < 4) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return switch (request.word(2)) {
            case "TYPE" -> {
                if (request.count() > 4) {
                    throw new CommandException(CommandException.SYNTAX);
                }
                yield type(request, 3);
            }
            case "ID" -> ids(request);
            default -> throw new CommandException(CommandException.SYNTAX);
        };
    }

    /// Of `CLIENT KILL` with filters, all of which have to hold: `ID`, `ADDR`, `LADDR`, `USER`, `TYPE`, `MAXAGE`, and
    /// `SKIPME`, which is `yes` unless it is said.
    ///
    /// @param asking who says so
    Predicate<Connection> killed(Request request, Connection asking) throws CommandException {
        if (request.count() % 2 != 0) {
            throw new CommandException(CommandException.SYNTAX);
        }
        Predicate<Connection> meant = _ -> true;
        boolean skip = true;
        for (int i = 2; i < request.count(); i += 2) {
            if (request.word(i).equals("SKIPME")) {
                skip = yes(request.word(i + 1));
            } else {
                meant = meant.and(condition(request, i));
            }
        }
        long own = skip ? asking.id() : 0;
        return meant.and(each -> each.id() != own);
    }

    private Predicate<Connection> condition(Request request, int at) throws CommandException {
        String value = request.text(at + 1);
        return switch (request.word(at)) {
            case "ID" -> {
                long id = id(request, at + 1);
                yield each -> each.id() == id;
            }
            case "ADDR" -> each -> ClientList.remote(each).equals(value);
            case "LADDR" -> each -> ClientList.local(each).equals(value);
            case "USER" -> each -> each.clientInfo().tenant().equals(value);
            case "TYPE" -> type(request, at + 1);
            case "MAXAGE" -> {
                long seconds = request.integer(at + 1);
                yield each -> clients.age(each) >= seconds;
            }
            default -> throw new CommandException(CommandException.SYNTAX);
        };
    }

    private static boolean yes(String word) throws CommandException {
        return switch (word) {
            case "YES" -> true;
            case "NO" -> false;
            default -> throw new CommandException(CommandException.SYNTAX);
        };
    }

    /// All are normal clients: there are no replicas, and nobody subscribes.
    private static Predicate<Connection> type(Request request, int at) throws CommandException {
        String type = request.word(at);
        if (!type.equals("NORMAL") && !ABSENT_TYPES.contains(type)) {
            throw new CommandException("ERR Unknown client type '" + type.toLowerCase(Locale.ROOT) + "'");
        }
        return _ -> type.equals("NORMAL");
    }

    private static Predicate<Connection> ids(Request request) throws CommandException {
        Set<Long> ids = new HashSet<>();
        for (int i = 3; i < request.count(); i++) {
            ids.add(id(request, i));
        }
        return each -> ids.contains(each.id());
    }

    private static long id(Request request, int at) throws CommandException {
        try {
            long id = request.integer(at);
            if (id > 0) {
                return id;
            }
        } catch (CommandException none) {
            throw new CommandException("ERR Invalid client ID");
        }
        throw new CommandException("ERR client-id should be greater than 0");
    }
}
