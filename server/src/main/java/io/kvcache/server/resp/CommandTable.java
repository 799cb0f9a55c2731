package io.kvcache.server.resp;

import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.resp.InfoCommands.SaveCommand;
import io.kvcache.server.resp.KeyCommands.ScanCommands;
import io.kvcache.server.resp.ReadCommands.GetAndModifyCommands;
import io.kvcache.server.resp.RespProtocol.RespStats;
import io.kvcache.server.resp.Transaction.TransactionCommands;
import io.kvcache.server.resp.WriteCommands.CounterCommands;
import io.kvcache.transport.cluster.HashSlots;
import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The commands there are.
final class CommandTable {

    /// Bytes of an unknown command's arguments that the error repeats.
    private static final int MAX_QUOTED_BYTES = 128;

    /// Requests of a pipeline whose look-ups are worth being prepared together.
    private static final int MIN_LOOKAHEAD = 4;

    /// Longest argument of an unauthenticated client, as with Redis.
    private static final int MAX_PREAUTH_BYTES = 16 << 10;

    /// How names of commands begin that Redis has for what is not kept here.
    private static final Pattern OF_STRUCTURES = Pattern.compile("(H(SET|GET|M|DEL|KEYS|VALS|LEN|SCAN|EXISTS|INCR)"
            + "|[BLR]+(PUSH|POP|RANGE|LEN|INDEX|REM|TRIM|INSERT|MOVE)|S(ADD|REM|MEMBERS|ISMEMBER|CARD|INTER|UNION|DIFF)"
            + "|Z[A-Z]+|X[A-Z]+|EVAL|SCRIPT|FUNCTION|FCALL|P?SUBSCRIBE|PUBLISH|PF(ADD|COUNT|MERGE)|GEO|BIT)");

    private static final String NO_AUTH = "NOAUTH Authentication required.";

    private final @Nullable KeyspaceRouter keyspaceRouter;
    private final String tenant;
    private final RespStats stats;
    private final Map<String, CommandSpec> commands;
    private final @Nullable HashSlotRedirector slotRedirector;
    private final @Nullable HashSlotForwarding forwarding;

    /// @param commands by name in capitals
    /// @param slotRedirector for clients that find the owners of keys; null for others
    /// @param forwarding for clients of a cluster that know one server; null for others
    CommandTable(
            @Nullable KeyspaceRouter keyspaceRouter,
            @Nullable HashSlotRedirector slotRedirector,
            @Nullable HashSlotForwarding forwarding,
            String tenant,
            RespStats stats,
            Map<String, CommandSpec> commands) {
        this.keyspaceRouter = keyspaceRouter;
        this.slotRedirector = slotRedirector;
        this.forwarding = forwarding;
        this.tenant = tenant;
        this.stats = stats;
        this.commands = commands;
    }

    /// The commands that an unauthenticated client may send.
    static CommandTable preAuth(List<CommandSpec> specs, RespStats stats) {
        Map<String, CommandSpec> commands = new TreeMap<>();
        specs.forEach(spec -> commands.put(spec.name(), spec));
        return new CommandTable(null, null, null, "", stats, Map.copyOf(commands));
    }

    static CommandTable of(RespContext context, RespAuthenticator respAuthenticator, RespStats stats) {
        Map<String, CommandSpec> commands = new TreeMap<>();
        KeyspaceRouter keyspaceRouter = context.keyspaceRouter();
        HashSlotOwnership ownership = context.slotOwnership();
        ReadCommands reads = new ReadCommands(keyspaceRouter);
        Stream.of(
                        new ConnectionCommands(context.serverInfo().version(), context.mode(), respAuthenticator)
                                .commands(),
                        List.of(CommandSpec.of(
                                "CLIENT",
                                -2,
                                "noscript",
                                CommandSpec.ArgumentPositions.NONE,
                                new ClientCommand(context)::run)),
                        reads.commands(),
                        new GetAndModifyCommands(keyspaceRouter, reads, stats).commands(),
                        new WriteCommands(context, stats).commands(),
                        new CounterCommands(keyspaceRouter, reads, stats).commands(),
                        new KeyCommands(keyspaceRouter).commands(),
                        new ExpiryCommands(keyspaceRouter).commands(),
                        new ScanCommands(keyspaceRouter, stats).commands(),
                        TransactionCommands.commands(),
                        new HintCommands(keyspaceRouter).commands(),
                        new SaveCommand(context, stats).commands(),
                        new InfoCommands(context, stats).commands(),
                        new CommandCommand(commands.values()).commands(),
                        ownership == null ? List.<CommandSpec>of() : new ClusterCommands(ownership).commands())
                .flatMap(List::stream)
                .forEach(spec -> commands.put(spec.name(), spec));
        HashSlotRedirector redirector = ownership == null
                ? null
                : context.passedOn()
                        ? new HashSlotRedirector(ownership, keyspaceRouter::slotOf, false)
                        : new HashSlotRedirector(ownership, HashSlots::of, true);
        RequestForwarder forwarder = context.forwarder();
        HashSlotForwarding forwarding =
                forwarder == null ? null : new HashSlotForwarding(forwarder, keyspaceRouter, context.tenant(), stats);
        return new CommandTable(keyspaceRouter, redirector, forwarding, context.tenant(), stats, Map.copyOf(commands));
    }

    /// Whether the next argument is a value, and where its bytes go.
    @Nullable
    ValueUpload beginValue(RespSession session, RespRequest soFar, int count, long bytes) {
        if (keyspaceRouter == null) {
            return bytes > MAX_PREAUTH_BYTES ? ValueUpload.rejected(NO_AUTH) : null;
        }
        CommandSpec spec = soFar.count() == 0 ? null : soFar.command(this);
        if (spec == null || !spec.values().has(soFar.count(), count)) {
            return null;
        }
        if (!spec.acceptsCount(count)) {
            return ValueUpload.rejected(wrongCount(spec));
        }
        byte[] key = soFar.argument(spec.keyOf(soFar.count()));
        String redirection = slotRedirector == null ? null : slotRedirector.redirectionOf(key);
        if (redirection != null) {
            return ValueUpload.rejected(redirection);
        }
        Keyspace keyspace = keyspaceRouter.of(key);
        String rejection = keyRejection(keyspace, key);
        if (rejection != null) {
            return ValueUpload.rejected(rejection);
        }
        if (bytes > keyspace.keyspaceLimits().valueBytes()) {
            return ValueUpload.rejected("ERR value of " + bytes + " bytes; it takes 0 to "
                    + keyspace.keyspaceLimits().valueBytes());
        }
        if (forwarding != null && forwarding.isPassedOn(spec, key)) {
            return HashSlotForwarding.upload(keyspace, bytes);
        }
        if (slotRedirector != null && slotRedirector.isOfWholeKeys()) {
            keyspace.noteWholeKey(key);
        }
        byte[] predecessor = session.sequenceTracker(keyspace).onWrite(key);
        return predecessor == null && spec.keys().step() == 1 && Keyspace.isSmall(key, bytes)
                ? ValueUpload.small(keyspace, key, (int) bytes)
                : ValueUpload.toPut(keyspace.put(key, bytes, predecessor));
    }

    /// Looks at the requests that have come in a pipeline, and has their keys looked up together.
    ///
    /// @param in where the first of them begins
    /// @return of how many requests the keys were seen; 0 when that brings nothing
    int lookAhead(ByteBuf in) {
        KeyspaceRouter own = keyspaceRouter;
        boolean few = in.readableBytes() < PipelineScanner.MIN_BYTES;
        if (few || own == null || slotRedirector != null || forwarding != null) {
            return 0;
        }
        List<byte[]> keys = PipelineScanner.keys(in);
        if (keys.size() < MIN_LOOKAHEAD || !own.isAllOwn()) {
            return 0;
        }
        own.ownKeyspace().expect(keys);
        return keys.size();
    }

    /// Why nothing may be stored under a key, or null.
    static @Nullable String keyRejection(Keyspace keyspace, byte[] key) {
        int most = keyspace.keyspaceLimits().keyBytes();
        return key.length >= 1 && key.length <= most
                ? null
                : "ERR key of " + key.length + " bytes; it takes 1 to " + most;
    }

    /// Returns whether the next argument is a value.
    boolean isValue(RespRequest soFar, int count) {
        CommandSpec spec = soFar.count() == 0 ? null : soFar.command(this);
        return keyspaceRouter != null
                && spec != null
                && spec.acceptsCount(count)
                && spec.values().has(soFar.count(), count);
    }

    /// Why a request cannot be run later, as part of a transaction; null when it can.
    @Nullable
    String validationError(RespRequest request) {
        try {
            CommandSpec spec = validate(request);
            if (slotRedirector != null) {
                slotRedirector.requireOwn(List.of(request), this);
            }
            return TransactionCommands.isQueueable(spec.name())
                    ? null
                    : "ERR " + spec.name() + " is not allowed between MULTI and EXEC";
        } catch (CommandException refused) {
            return refused.reply();
        }
    }

    /// Searches the table. Callers that have a request ask it for its command instead, which remembers the answer.
    @Nullable
    CommandSpec find(String name) {
        return commands.get(name);
    }

    private CommandSpec validate(RespRequest request) throws CommandException {
        CommandSpec spec = request.command(this);
        if (spec == null) {
            throw new CommandException(keyspaceRouter == null ? NO_AUTH : unknownCommand(request));
        }
        if (!spec.acceptsCount(request.count())) {
            throw new CommandException(wrongCount(spec));
        }
        return spec;
    }

    /// Returns whether clients find the owners of keys themselves, as those of Redis Cluster do.
    boolean isForRedisCluster() {
        return slotRedirector != null;
    }

    /// Looks at the commands of a transaction before the first of them runs.
    ///
    /// @throws CommandException when their keys are not all of one slot of this server
    void requireOwn(Collection<RespRequest> transaction) throws CommandException {
        if (slotRedirector != null) {
            slotRedirector.requireOwn(transaction, this);
        }
    }

    void run(RespSession session, RespRequest request, RespEncoder respEncoder) {
        try {
            CommandSpec spec = validate(request);
            int slot = slotRedirector == null ? HashSlotRedirector.NO_KEY : slotRedirector.slotOf(spec, request);
            if (slotRedirector != null && slotRedirector.redirectionOf(slot) != null) {
                slotRedirector.redirect(session, slot, error -> reject(error, respEncoder));
            } else if (forwarding != null && forwarding.run(session, spec, request, respEncoder)) {
                return; // another server answers
            } else if (keyspaceRouter != null && isUnindexed(keyspaceRouter, spec, request)) {
                byte[] key = request.argument(spec.requiredKey());
                session.awaitValue(
                        keyspaceRouter.of(key), key, come -> runAfterFetch(come, spec, session, request, respEncoder));
            } else {
                spec.command().run(session, request, respEncoder);
            }
        } catch (CommandException refused) {
            reject(refused.reply(), respEncoder);
        }
    }

    private void reject(String error, RespEncoder respEncoder) {
        stats.errors.increment();
        respEncoder.writeError(error);
    }

    private static boolean isUnindexed(KeyspaceRouter keyspaceRouter, CommandSpec spec, RespRequest request) {
        int place = spec.requiredKey();
        return place > 0
                && place < request.count()
                && Keyspace.isValidKey(request.argument(place))
                && keyspaceRouter.of(request.argument(place)).isUnindexed(request.argument(place));
    }

    private void runAfterFetch(
            ReadResult come, CommandSpec spec, RespSession session, RespRequest request, RespEncoder respEncoder) {
        PinnedValue value = come.value();
        if (come.outcome() == ReadResult.Outcome.TIMED_OUT) {
            stats.errors.increment();
            respEncoder.writeError(CommandException.TIMED_OUT);
        } else {
            run(spec, session, request, respEncoder);
        }
        if (value != null) {
            value.close();
        }
    }

    private void run(CommandSpec spec, RespSession session, RespRequest request, RespEncoder respEncoder) {
        try {
            spec.command().run(session, request, respEncoder);
        } catch (CommandException refused) {
            stats.errors.increment();
            respEncoder.writeError(refused.reply());
        }
    }

    /// The label of a request in metrics: its command's name, or `unknown`.
    String label(RespRequest request) {
        CommandSpec spec = request.command(this);
        return spec == null ? "unknown" : spec.lowerName();
    }

    /// Their owner; empty for none.
    String tenant() {
        return tenant;
    }

    private static String wrongCount(CommandSpec spec) {
        return "ERR wrong number of arguments for '" + spec.lowerName() + "' command";
    }

    private static String unknownCommand(RespRequest request) {
        StringBuilder text = new StringBuilder("ERR unknown command '")
                .append(truncate(request.argument(0)))
                .append("', with args beginning with: ");
        for (int i = 1; i < request.count() && text.length() < MAX_QUOTED_BYTES; i++) {
            text.append('\'').append(truncate(request.argument(i))).append("' ");
        }
        if (OF_STRUCTURES
                .matcher(truncate(request.argument(0)).toUpperCase(Locale.ROOT))
                .lookingAt()) {
            text.append("(KVCache keeps plain values: no hashes, lists, sets, streams, scripts or channels)");
        }
        return text.toString();
    }

    private static String truncate(byte[] word) {
        return new String(word, 0, Math.min(word.length, MAX_QUOTED_BYTES), StandardCharsets.ISO_8859_1);
    }

    /// COMMAND: tells clients which commands there are and where their keys are.
    private static final class CommandCommand {

        private final Collection<CommandSpec> all;

        /// @param all filled by the time the first client asks
        CommandCommand(Collection<CommandSpec> all) {
            this.all = all;
        }

        List<CommandSpec> commands() {
            return List.of(
                    CommandSpec.of("COMMAND", -1, "loading stale", CommandSpec.ArgumentPositions.NONE, this::run));
        }

        private void run(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            String sub = request.count() == 1 ? "" : request.argumentUpperCase(1);
            switch (sub) {
                case "" -> {
                    out.beginArray(all.size());
                    all.forEach(spec -> describe(spec, out));
                }
                case "COUNT" -> out.writeInteger(all.size());
                case "LIST" -> {
                    out.beginArray(all.size());
                    all.forEach(spec -> out.writeBulk(spec.lowerName()));
                }
                case "INFO" -> info(request, out);
                case "DOCS" -> out.beginMap(0);
                default -> throw new CommandException("ERR unknown subcommand '" + request.argumentText(1) + "'.");
            }
        }

        private void info(RespRequest request, RespEncoder out) {
            out.beginArray(request.count() - 2);
            for (int i = 2; i < request.count(); i++) {
                String name = request.argumentUpperCase(i);
                all.stream()
                        .filter(spec -> spec.name().equals(name))
                        .findFirst()
                        .ifPresentOrElse(spec -> describe(spec, out), out::writeNull);
            }
        }

        /// Name, arity, flags, places of the keys; then categories, tips, key specifications and subcommands,
        /// of which there are none.
        private static void describe(CommandSpec spec, RespEncoder out) {
            out.beginArray(10);
            out.writeBulk(spec.lowerName());
            out.writeInteger(spec.arity());
            out.beginSet(spec.flags().size());
            spec.flags().forEach(out::writeSimple);
            out.writeInteger(spec.keys().first());
            out.writeInteger(spec.keys().last());
            out.writeInteger(spec.keys().step());
            for (int i = 0; i < 4; i++) {
                out.beginArray(0);
            }
        }
    }

    /// Finds the keys of the requests that have come in a pipeline, before they are decoded: the argument after
    /// each command's name. It only looks; what it does not understand ends its search.
    static final class PipelineScanner {

        /// Keys found at a time: enough for their look-ups to overlap, few enough for the processor's first cache.
        static final int MAX_KEYS = 16;

        /// Fewer bytes hold too few requests.
        static final int MIN_BYTES = 100;

        private static final int MAX_KEY_BYTES = 128;
        private static final int MAX_ARGUMENTS = 8;
        private static final int NOT_A_NUMBER = -1;

        private final ByteBuf in;
        private final int end;
        private int at;

        private PipelineScanner(ByteBuf in) {
            this.in = in;
            at = in.readerIndex();
            end = in.writerIndex();
        }

        /// The keys of the first requests, one of each.
        ///
        /// @param in where a request begins; not changed
        static List<byte[]> keys(ByteBuf in) {
            if (in.readableBytes() < MIN_BYTES) {
                return List.of();
            }
            PipelineScanner scanner = new PipelineScanner(in);
            List<byte[]> keys = new ArrayList<>(MAX_KEYS);
            while (keys.size() < MAX_KEYS && scanner.scanRequest(keys)) {}
            return keys;
        }

        /// Adds the key of the next request; returns whether there was one.
        private boolean scanRequest(List<byte[]> keys) {
            int count = readNumber('*');
            if (count < 2 || count > MAX_ARGUMENTS) {
                return false;
            }
            byte[] key = {};
            for (int i = 0; i < count; i++) {
                int bytes = readNumber('$');
                if (bytes < 0 || bytes > end - at - 2) {
                    return false;
                }
                if (i == 1 && bytes > 0 && bytes <= MAX_KEY_BYTES) {
                    key = new byte[bytes];
                    in.getBytes(at, key);
                }
                at += bytes + 2;
            }
            return key.length > 0 && keys.add(key);
        }

        /// Reads a line of a mark and up to five digits.
        private int readNumber(char mark) {
            if (at >= end || in.getByte(at) != mark) {
                return NOT_A_NUMBER;
            }
            int last = Math.min(end - 1, at + 6);
            int number = 0;
            for (int i = at + 1; i < last; i++) {
                byte digit = in.getByte(i);
                if (digit == '\r' && i > at + 1) {
                    at = i + 2;
                    return number;
                }
                if (digit < '0' || digit > '9') {
                    return NOT_A_NUMBER;
                }
                number = 10 * number + digit - '0';
            }
            return NOT_A_NUMBER;
        }
    }
}
