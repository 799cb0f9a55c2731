package io.kvcache.server.resp;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.log.LogRateLimiter;
import io.kvcache.server.resp.ExpiryCommands.ExpiryParser;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.io.ByteArrayOutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// SET and its older forms. The value is in its slots when the command runs.
final class WriteCommands {

    private final KeyspaceRouter keyspaceRouter;
    private final RespStats stats;
    private final DroppedValueLog dropped;

    WriteCommands(RespContext context, RespStats stats) {
        keyspaceRouter = context.keyspaceRouter();
        this.stats = stats;
        dropped = new DroppedValueLog(context.clock());
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions key = CommandSpec.ArgumentPositions.FIRST;
        return List.of(
                CommandSpec.storing("SET", -3, key, CommandSpec.ArgumentPositions.at(2), this::set),
                CommandSpec.storing("SETNX", 3, key, CommandSpec.ArgumentPositions.at(2), this::setIfAbsent),
                CommandSpec.storing("GETSET", 3, key, CommandSpec.ArgumentPositions.at(2), this::getSet),
                CommandSpec.storing(
                        "SETEX",
                        4,
                        key,
                        CommandSpec.ArgumentPositions.at(3),
                        (session, request, out) -> setWithExpiry("EX", session, request, out)),
                CommandSpec.storing(
                        "PSETEX",
                        4,
                        key,
                        CommandSpec.ArgumentPositions.at(3),
                        (session, request, out) -> setWithExpiry("PX", session, request, out)),
                CommandSpec.storing(
                        "MSET",
                        -3,
                        new CommandSpec.ArgumentPositions(1, -1, 2),
                        new CommandSpec.ArgumentPositions(2, -1, 2),
                        MsetCommand::run));
    }

    private void set(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        ValueUpload value = request.values().getFirst();
        String refusal = value.rejection();
        if (refusal != null) {
            reject(session, request, refusal, out);
            return;
        }
        if (request.count() == 3 && value.isAtHand()) {
            if (value.store()) {
                out.writeOk();
            } else {
                reject(session, request, CommandException.OUT_OF_MEMORY, out);
            }
            return;
        }
        PendingPut put = value.put();
        store(
                session,
                request,
                put,
                SetOptions.parse(request, 3, keyspaceRouter.ownKeyspace().nowMillis()),
                out,
                stored -> {
                    if (stored) {
                        out.writeOk();
                    } else {
                        out.writeNull();
                    }
                });
    }

    private void setIfAbsent(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        PendingPut put = request.values().getFirst().put();
        SetOptions options = new SetOptions(0, false, Condition.IF_ABSENT, false);
        store(session, request, put, options, out, stored -> out.writeInteger(stored ? 1 : 0));
    }

    private void getSet(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        PendingPut put = request.values().getFirst().put();
        store(session, request, put, new SetOptions(0, false, Condition.ALWAYS, true), out, _ -> {});
    }

    private void setWithExpiry(String unit, RespSession session, RespRequest request, RespEncoder out)
            throws CommandException {
        PendingPut put = request.values().getFirst().put();
        String command = request.name().toLowerCase(Locale.ROOT);
        long expiry = ExpiryParser.parse(
                unit, request.argumentLong(2), keyspaceRouter.ownKeyspace().nowMillis(), command);
        store(session, request, put, new SetOptions(expiry, false, Condition.ALWAYS, false), out, _ -> out.writeOk());
    }

    private interface StoreReply {
        void reply(boolean stored);
    }

    private void store(
            RespSession session,
            RespRequest request,
            PendingPut put,
            SetOptions options,
            RespEncoder out,
            StoreReply storeReply)
            throws CommandException {
        byte[] key = request.argument(1);
        switch (put.state()) {
            case WRITING -> {
                ReadResult older = options.get() ? keyspaceRouter.of(key).read(key) : ReadResult.MISS;
                if (older.outcome() == ReadResult.Outcome.ON_DISK || needsUnindexedValue(key, options)) {
                    request.values().getFirst().transfer();
                    session.awaitValue(
                            keyspaceRouter.of(key),
                            key,
                            come -> commit(key, put, options, come, out, storeReply),
                            put::close);
                } else {
                    commit(key, put, options, older.value(), out, storeReply);
                }
            }
            case REJECTED -> reject(session, request, CommandException.OUT_OF_MEMORY, out);
            case DECLINED -> // the key is absent
                reply(options, null, options.condition() != Condition.IF_PRESENT, out, storeReply);
        }
    }

    /// Returns whether what the options ask of the older value, other than itself, has to come from disk.
    private boolean needsUnindexedValue(byte[] key, SetOptions options) {
        return !options.get()
                && (options.keepTtl() || options.condition() != Condition.ALWAYS)
                && keyspaceRouter.of(key).isUnindexed(key);
    }

    /// Goes on with what came of the older value; without it nothing is stored that would have to tell of it.
    private void commit(
            byte[] key, PendingPut put, SetOptions options, ReadResult older, RespEncoder out, StoreReply storeReply) {
        if (older.outcome() == ReadResult.Outcome.TIMED_OUT) {
            put.close();
            stats.errors.increment();
            out.writeError(CommandException.TIMED_OUT);
        } else {
            commit(key, put, options, older.value(), out, storeReply);
        }
    }

    /// @param older taken over
    private void commit(
            byte[] key,
            PendingPut put,
            SetOptions options,
            @Nullable PinnedValue older,
            RespEncoder out,
            StoreReply storeReply) {
        boolean stored;
        try (put) {
            stored = put.commit(expiry(key, options), TensorMetadata.NONE, options.condition());
        }
        if (!options.get()) {
            close(older);
        }
        reply(options, older, stored, out, storeReply);
    }

    private long expiry(byte[] key, SetOptions options) {
        KeyInfo info = options.keepTtl() ? keyspaceRouter.of(key).info(key) : null;
        return info == null ? options.expiry() : info.expiresAtMillis();
    }

    private static void reply(
            SetOptions options, @Nullable PinnedValue older, boolean stored, RespEncoder out, StoreReply storeReply) {
        if (!options.get()) {
            storeReply.reply(stored);
        } else if (older == null) {
            out.writeNull();
        } else {
            out.writeValue(older, 0, older.bytes());
        }
    }

    private static void close(@Nullable PinnedValue value) {
        if (value != null) {
            value.close();
        }
    }

    /// Says that the value was not stored; to LMCache's native client, which cannot hear that, says OK. The older
    /// value goes then: it may not be read after its successor was acknowledged.
    private void reject(RespSession session, RespRequest request, String reply, RespEncoder out) {
        if (session.isMaybeNativeClient() && request.count() == 3) {
            byte[] key = request.argument(1);
            if (Keyspace.isValidKey(key)) {
                keyspaceRouter.of(key).delete(key);
            }
            stats.droppedAfterOk.increment();
            dropped.log(reply, key.length);
            out.writeOk();
        } else {
            stats.errors.increment();
            out.writeError(reply);
        }
    }

    /// The options of `SET key value`.
    ///
    /// @param expiry when the value expires, in milliseconds since the epoch; 0 for never
    /// @param keepTtl whether it expires when the older value would have
    /// @param condition whether it is stored at all
    /// @param get whether the older value is the reply
    private record SetOptions(long expiry, boolean keepTtl, Condition condition, boolean get) {

        static SetOptions parse(RespRequest request, int from, long nowMillis) throws CommandException {
            String unit = "";
            int amount = 0; // where it stands: words that do not belong together are told before it is read
            boolean keepTtl = false;
            boolean get = false;
            Condition condition = Condition.ALWAYS;
            for (int i = from; i < request.count(); i++) {
                String word = request.argumentUpperCase(i);
                switch (word) {
                    case "NX" -> condition = requireUnset(condition, Condition.IF_ABSENT);
                    case "XX" -> condition = requireUnset(condition, Condition.IF_PRESENT);
                    case "GET" -> get = true;
                    case "KEEPTTL" -> keepTtl = true;
                    case "EX", "PX", "EXAT", "PXAT" -> {
                        if (amount != 0 || i + 1 == request.count()) {
                            throw new CommandException(CommandException.SYNTAX);
                        }
                        i++;
                        unit = word;
                        amount = i;
                    }
                    default -> throw new CommandException(CommandException.SYNTAX);
                }
            }
            if (keepTtl && amount != 0) {
                throw new CommandException(CommandException.SYNTAX);
            }
            long expiry = amount == 0 ? 0 : ExpiryParser.parse(unit, request.argumentLong(amount), nowMillis, "set");
            return new SetOptions(expiry, keepTtl, condition, get);
        }

        private static Condition requireUnset(Condition before, Condition asked) throws CommandException {
            if (before != Condition.ALWAYS && before != asked) {
                throw new CommandException(CommandException.SYNTAX);
            }
            return asked;
        }
    }

    /// MSET: several values, stored when all have arrived, one after the other. Others may see some of them before
    /// the rest; with Redis they cannot.
    private static final class MsetCommand {

        private MsetCommand() {}

        static void run(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            if (request.count() % 2 == 0) {
                throw new CommandException("ERR wrong number of arguments for 'mset' command");
            }
            List<PendingPut> puts = new ArrayList<>();
            for (ValueUpload value : request.values()) {
                puts.add(value.put());
            }
            boolean refused = puts.stream().anyMatch(put -> put.state() == PendingPut.State.REJECTED);
            if (refused) {
                throw new CommandException(CommandException.OUT_OF_MEMORY);
            }
            for (PendingPut put : puts) {
                if (put.state() == PendingPut.State.WRITING) {
                    put.commit(0, TensorMetadata.NONE, Condition.ALWAYS);
                }
            }
            out.writeOk();
        }
    }

    /// Logs values that were dropped although their client was answered `+OK`, and no more than some in ten
    /// seconds.
    ///
    /// **Threads.** Any.
    static final class DroppedValueLog {

        private static final Logger LOG = System.getLogger(DroppedValueLog.class.getName());

        private static final int MAX_LINES = 5;
        private static final Duration WINDOW = Duration.ofSeconds(10);

        private final LogRateLimiter limit;

        DroppedValueLog(Clock clock) {
            limit = new LogRateLimiter(clock, MAX_LINES, WINDOW);
        }

        /// Logs one.
        ///
        /// @param refusal what another client would have been answered
        /// @param keyBytes size of its key
        void log(String refusal, int keyBytes) {
            long unsaid = limit.tryAcquire();
            if (unsaid == LogRateLimiter.SUPPRESSED) {
                return;
            }
            LOG.log(
                    Level.WARNING,
                    "A SET was answered +OK and its value dropped, as the client may be LMCache's native one, which cannot"
                            + " read an error: " + refusal.substring(refusal.indexOf(' ') + 1)
                            + (refusal.contains("key of ") ? "" : "; the key has " + keyBytes + " bytes")
                            + ". limits.key_bytes and limits.value_bytes bound a SET; kv_dropped_total and"
                            + " values_dropped_after_ok of INFO count these"
                            + LogRateLimiter.suppressedNote(unsaid));
        }
    }

    /// INCR, DECR, INCRBY and DECRBY: a value that is a whole number of 64 bits is replaced by another, and no
    /// step of a client is lost. A key that is not here counts as 0, and so may one that was evicted meanwhile.
    ///
    /// Clients that count with one key take turns, so none of them has to try again for the sake of another; only a
    /// SET between a read and the write that follows it makes one try again.
    static final class CounterCommands {

        /// Changes by commands of other kinds between a read and the write that follows it.
        private static final int MAX_TRIES = 64;

        /// A power of two.
        private static final int LOCKS = 64;

        /// Longer values cannot be numbers.
        private static final int MAX_DIGITS = 20;

        private static final String OVERFLOW = "ERR increment or decrement would overflow";

        private final KeyspaceRouter keyspaceRouter;
        private final ReadCommands reads;
        private final RespStats stats;
        private final ReentrantLock[] locks = new ReentrantLock[LOCKS];

        CounterCommands(KeyspaceRouter keyspaceRouter, ReadCommands reads, RespStats stats) {
            Arrays.setAll(locks, _ -> new ReentrantLock());
            this.keyspaceRouter = keyspaceRouter;
            this.reads = reads;
            this.stats = stats;
        }

        List<CommandSpec> commands() {
            String flags = "write denyoom fast";
            CommandSpec.ArgumentPositions key = CommandSpec.ArgumentPositions.FIRST;
            return List.of(
                    CommandSpec.of("INCR", 2, flags, key, (session, request, out) -> {
                        add(session, request.argument(1), 1, out, MAX_TRIES);
                    }),
                    CommandSpec.of("DECR", 2, flags, key, (session, request, out) -> {
                        add(session, request.argument(1), -1, out, MAX_TRIES);
                    }),
                    CommandSpec.of("INCRBY", 3, flags, key, (session, request, out) -> {
                        add(session, request.argument(1), request.argumentLong(2), out, MAX_TRIES);
                    }),
                    CommandSpec.of("DECRBY", 3, flags, key, this::decrementBy));
        }

        private void decrementBy(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            long less = request.argumentLong(2);
            if (less == Long.MIN_VALUE) {
                throw new CommandException("ERR decrement would overflow");
            }
            add(session, request.argument(1), -less, out, MAX_TRIES);
        }

        private void add(RespSession session, byte[] key, long step, RespEncoder out, int tries)
                throws CommandException {
            String rejection = CommandTable.keyRejection(keyspaceRouter.of(key), key);
            if (rejection != null) {
                throw new CommandException(rejection);
            }
            ReentrantLock turn = locks[Arrays.hashCode(key) & LOCKS - 1];
            turn.lock();
            try {
                addInTurn(session, key, step, out, tries);
            } finally {
                turn.unlock();
            }
        }

        private void addInTurn(RespSession session, byte[] key, long step, RespEncoder out, int tries) {
            reads.withReadResult(session, key, readResult -> {
                try {
                    Long sum = tryAdd(key, readResult, step);
                    if (sum != null) {
                        out.writeInteger(sum);
                    } else if (tries > 1) {
                        add(session, key, step, out, tries - 1);
                    } else {
                        throw new CommandException(CommandException.CONTENDED);
                    }
                } catch (CommandException refused) {
                    stats.errors.increment();
                    out.writeError(refused.reply());
                }
            });
        }

        /// Returns the sum, or null when the value has changed since it was read. Closes what was read.
        private @Nullable Long tryAdd(byte[] key, ReadResult readResult, long step) throws CommandException {
            try (readResult) {
                return tryAddHeld(key, readResult, step);
            }
        }

        private @Nullable Long tryAddHeld(byte[] key, ReadResult readResult, long step) throws CommandException {
            PinnedValue older = readResult.value();
            if (older == null && readResult.outcome() != ReadResult.Outcome.MISS) {
                throw new CommandException(
                        readResult.outcome() == ReadResult.Outcome.THROTTLED
                                ? CommandException.THROTTLED
                                : CommandException.TIMED_OUT);
            }
            long sum = sum(older, step);
            byte[] text = Long.toString(sum).getBytes(StandardCharsets.US_ASCII);
            Keyspace keyspace = keyspaceRouter.of(key);
            try (PendingPut put = keyspace.put(key, text)) {
                if (put.state() != PendingPut.State.WRITING) {
                    throw new CommandException(CommandException.OUT_OF_MEMORY);
                }
                KeyInfo info = older == null ? null : keyspace.info(key);
                return put.commitInPlaceOf(older, info == null ? 0 : info.expiresAtMillis()) ? sum : null;
            }
        }

        private static long sum(@Nullable PinnedValue older, long step) throws CommandException {
            try {
                return Math.addExact(older == null ? 0 : number(older), step);
            } catch (ArithmeticException _) {
                throw new CommandException(OVERFLOW);
            }
        }

        private static long number(PinnedValue value) throws CommandException {
            if (value.bytes() > MAX_DIGITS) {
                throw new CommandException(CommandException.NOT_AN_INTEGER);
            }
            ByteArrayOutputStream text = new ByteArrayOutputStream(MAX_DIGITS);
            value.visit(0, value.bytes(), (memory, from, bytes) -> {
                for (long at = from; at < from + bytes; at++) {
                    text.write(memory.get(ValueLayout.JAVA_BYTE, at));
                }
            });
            return IntegerCodec.parse(text.toByteArray());
        }
    }
}
