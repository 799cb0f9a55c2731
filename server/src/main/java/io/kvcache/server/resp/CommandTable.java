package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The commands there are.
final class CommandTable {

    /// Of an unknown command's arguments, as much is repeated to the client.
    private static final int QUOTED_BYTES = 128;

    /// Longest argument of a client that has not said who it is, as with Redis.
    private static final int MOST_UNKNOWN_BYTES = 16 << 10;

    private static final String NO_AUTH = "NOAUTH Authentication required.";

    private final @Nullable KeyspaceRouter reach;
    private final String tenant;
    private final RespStats stats;
    private final Map<String, CommandSpec> commands;

    private CommandTable(
            @Nullable KeyspaceRouter reach, String tenant, RespStats stats, Map<String, CommandSpec> commands) {
        this.reach = reach;
        this.tenant = tenant;
        this.stats = stats;
        this.commands = commands;
    }

    /// Those that a client may say before it has said who it is.
    static CommandTable before(List<CommandSpec> specs, RespStats stats) {
        Map<String, CommandSpec> commands = new TreeMap<>();
        specs.forEach(spec -> commands.put(spec.name(), spec));
        return new CommandTable(null, "", stats, Map.copyOf(commands));
    }

    static CommandTable of(RespContext context, Login login, RespStats stats) {
        Map<String, CommandSpec> commands = new TreeMap<>();
        KeyspaceRouter reach = context.reach();
        ReadCommands reads = new ReadCommands(reach);
        Stream.of(
                        new ConnectionCommands(context.facts().version(), login).commands(),
                        List.of(CommandSpec.of(
                                "CLIENT", -2, "noscript", CommandSpec.Places.NONE, new ClientCommand(context)::run)),
                        reads.commands(),
                        new TakingCommands(reach, reads, stats).commands(),
                        new WriteCommands(context, stats).commands(),
                        new KeyCommands(reach).commands(),
                        new ExpiryCommands(reach).commands(),
                        new ListingCommands(reach, stats).commands(),
                        TransactionCommands.commands(),
                        new HintCommand(reach).commands(),
                        new SaveCommand(context, stats).commands(),
                        new InfoCommands(context, stats).commands(),
                        new CommandCommand(commands.values()).commands())
                .flatMap(List::stream)
                .forEach(spec -> commands.put(spec.name(), spec));
        return new CommandTable(reach, context.tenant(), stats, Map.copyOf(commands));
    }

    /// Whether the next argument is a value, and where its bytes go.
    @Nullable
    IncomingValue value(RespSession session, Request soFar, int count, long bytes) {
        CommandSpec spec = commands.get(soFar.name());
        if (reach == null) {
            return bytes > MOST_UNKNOWN_BYTES ? IncomingValue.refused(NO_AUTH) : null;
        }
        if (spec == null || !spec.values().has(soFar.count(), count)) {
            return null;
        }
        if (!spec.takes(count)) {
            return IncomingValue.refused(wrongCount(spec));
        }
        byte[] key = soFar.bytes(spec.keyOf(soFar.count()));
        Keyspace keyspace = reach.of(key);
        if (key.length < 1 || key.length > keyspace.keyspaceLimits().keyBytes()) {
            return IncomingValue.refused("ERR key of " + key.length + " bytes; it takes 1 to "
                    + keyspace.keyspaceLimits().keyBytes());
        }
        if (bytes > keyspace.keyspaceLimits().valueBytes()) {
            return IncomingValue.refused("ERR value of " + bytes + " bytes; it takes 0 to "
                    + keyspace.keyspaceLimits().valueBytes());
        }
        return IncomingValue.to(
                keyspace.put(key, bytes, session.runs().forKeyspace(keyspace).onWrite(key)));
    }

    /// Whether the next argument is a value.
    boolean isValue(Request soFar, int count) {
        CommandSpec spec = commands.get(soFar.name());
        return reach != null
                && spec != null
                && spec.takes(count)
                && spec.values().has(soFar.count(), count);
    }

    /// Why a request cannot be run later, as part of a transaction; null when it can.
    @Nullable
    String mistake(Request request) {
        try {
            CommandSpec spec = find(request);
            return TransactionCommands.mayBeQueued(spec.name())
                    ? null
                    : "ERR " + spec.name() + " is not allowed between MULTI and EXEC";
        } catch (CommandException refused) {
            return refused.reply();
        }
    }

    private CommandSpec find(Request request) throws CommandException {
        CommandSpec spec = commands.get(request.name());
        if (spec == null) {
            throw new CommandException(reach == null ? NO_AUTH : unknown(request));
        }
        if (!spec.takes(request.count())) {
            throw new CommandException(wrongCount(spec));
        }
        return spec;
    }

    void run(RespSession session, Request request, Replies replies) {
        try {
            CommandSpec spec = find(request);
            if (reach != null && isStranger(reach, spec, request)) {
                byte[] key = request.bytes(spec.known());
                session.awaitValue(reach.of(key), key, come -> runKnowing(come, spec, session, request, replies));
            } else {
                spec.command().run(session, request, replies);
            }
        } catch (CommandException refused) {
            stats.errors.increment();
            replies.error(refused.reply());
        }
    }

    private static boolean isStranger(KeyspaceRouter reach, CommandSpec spec, Request request) {
        int place = spec.known();
        return place > 0
                && place < request.count()
                && Keys.possible(request.bytes(place))
                && reach.of(request.bytes(place)).isUnindexed(request.bytes(place));
    }

    private void runKnowing(ReadResult come, CommandSpec spec, RespSession session, Request request, Replies replies) {
        PinnedValue value = come.value();
        if (come.outcome() == ReadResult.Outcome.TIMED_OUT) {
            stats.errors.increment();
            replies.error(CommandException.LATE);
        } else {
            run(spec, session, request, replies);
        }
        if (value != null) {
            value.close();
        }
    }

    private void run(CommandSpec spec, RespSession session, Request request, Replies replies) {
        try {
            spec.command().run(session, request, replies);
        } catch (CommandException refused) {
            stats.errors.increment();
            replies.error(refused.reply());
        }
    }

    /// What a request is counted as: its command's name, or `unknown`.
    String verb(Request request) {
        CommandSpec spec = commands.get(request.name());
        return spec == null ? "unknown" : spec.lowerName();
    }

    /// Whose they are; empty for nobody.
    String tenant() {
        return tenant;
    }

    Collection<CommandSpec> all() {
        return commands.values();
    }

    private static String wrongCount(CommandSpec spec) {
        return "ERR wrong number of arguments for '" + spec.lowerName() + "' command";
    }

    private static String unknown(Request request) {
        StringBuilder text = new StringBuilder("ERR unknown command '")
                .append(cut(request.bytes(0)))
                .append("', with args beginning with: ");
        for (int i = 1; i < request.count() && text.length() < QUOTED_BYTES; i++) {
            text.append('\'').append(cut(request.bytes(i))).append("' ");
        }
        return text.toString();
    }

    private static String cut(byte[] word) {
        return new String(word, 0, Math.min(word.length, QUOTED_BYTES), StandardCharsets.ISO_8859_1);
    }
}
