package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyInfo;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import io.kvcache.server.keyspace.TensorMetadata;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// SET and its older forms. The value is in its slots when the command runs.
final class WriteCommands {

    private static final String NO_ROOM = "OOM command not allowed when used memory > 'maxmemory'.";

    private final KeyspaceRouter reach;
    private final RespStats stats;
    private final DroppedValues dropped;

    WriteCommands(RespContext context, RespStats stats) {
        reach = context.reach();
        this.stats = stats;
        dropped = new DroppedValues(context.clock());
    }

    List<CommandSpec> commands() {
        CommandSpec.Places key = CommandSpec.Places.FIRST;
        return List.of(
                CommandSpec.storing("SET", -3, key, CommandSpec.Places.at(2), this::set),
                CommandSpec.storing("SETNX", 3, key, CommandSpec.Places.at(2), this::setIfAbsent),
                CommandSpec.storing("GETSET", 3, key, CommandSpec.Places.at(2), this::getSet),
                CommandSpec.storing(
                        "SETEX",
                        4,
                        key,
                        CommandSpec.Places.at(3),
                        (session, request, out) -> setTimed("EX", session, request, out)),
                CommandSpec.storing(
                        "PSETEX",
                        4,
                        key,
                        CommandSpec.Places.at(3),
                        (session, request, out) -> setTimed("PX", session, request, out)),
                CommandSpec.storing(
                        "MSET", -3, new CommandSpec.Places(1, -1, 2), new CommandSpec.Places(2, -1, 2), MultiSet::run));
    }

    private void set(RespSession session, Request request, Replies out) throws CommandException {
        String refusal = request.values().getFirst().refusal();
        if (refusal != null) {
            refuse(session, request, refusal, out);
            return;
        }
        PendingPut put = request.values().getFirst().put();
        store(
                session,
                request,
                put,
                SetOptions.parse(request, 3, reach.ownKeyspace().nowMillis()),
                out,
                stored -> {
                    if (stored) {
                        out.ok();
                    } else {
                        out.nil();
                    }
                });
    }

    private void setIfAbsent(RespSession session, Request request, Replies out) throws CommandException {
        PendingPut put = request.values().getFirst().put();
        SetOptions options = new SetOptions(0, false, Condition.IF_ABSENT, false);
        store(session, request, put, options, out, stored -> out.integer(stored ? 1 : 0));
    }

    private void getSet(RespSession session, Request request, Replies out) throws CommandException {
        PendingPut put = request.values().getFirst().put();
        store(session, request, put, new SetOptions(0, false, Condition.ALWAYS, true), out, _ -> {});
    }

    private void setTimed(String unit, RespSession session, Request request, Replies out) throws CommandException {
        PendingPut put = request.values().getFirst().put();
        String command = request.name().toLowerCase(Locale.ROOT);
        long expiry = Expiry.parse(unit, request.integer(2), reach.ownKeyspace().nowMillis(), command);
        store(session, request, put, new SetOptions(expiry, false, Condition.ALWAYS, false), out, _ -> out.ok());
    }

    private interface Outcome {
        void reply(boolean stored);
    }

    private void store(
            RespSession session, Request request, PendingPut put, SetOptions options, Replies out, Outcome outcome)
            throws CommandException {
        byte[] key = request.bytes(1);
        switch (put.state()) {
            case WRITING -> {
                ReadResult older = options.get() ? reach.of(key).read(key) : ReadResult.MISS;
                if (older.outcome() == ReadResult.Outcome.ON_DISK || needsStranger(key, options)) {
                    request.values().getFirst().keep();
                    session.awaitValue(
                            reach.of(key), key, come -> commit(key, put, options, come, out, outcome), put::close);
                } else {
                    commit(key, put, options, older.value(), out, outcome);
                }
            }
            case REJECTED -> refuse(session, request, NO_ROOM, out);
        }
    }

    /// Whether what the options ask of the older value, other than itself, has to come from disk.
    private boolean needsStranger(byte[] key, SetOptions options) {
        return !options.get()
                && (options.keepTtl() || options.condition() != Condition.ALWAYS)
                && reach.of(key).isUnindexed(key);
    }

    /// Goes on with what came of the older value; without it nothing is stored that would have to tell of it.
    private void commit(
            byte[] key, PendingPut put, SetOptions options, ReadResult older, Replies out, Outcome outcome) {
        if (older.outcome() == ReadResult.Outcome.TIMED_OUT) {
            put.close();
            stats.errors.increment();
            out.error(CommandException.LATE);
        } else {
            commit(key, put, options, older.value(), out, outcome);
        }
    }

    /// @param older taken over
    private void commit(
            byte[] key, PendingPut put, SetOptions options, @Nullable PinnedValue older, Replies out, Outcome outcome) {
        boolean stored;
        try (put) {
            stored = put.commit(expiry(key, options), TensorMetadata.NONE, options.condition());
        }
        if (!options.get()) {
            close(older);
        }
        reply(options, older, stored, out, outcome);
    }

    private long expiry(byte[] key, SetOptions options) {
        KeyInfo info = options.keepTtl() ? reach.of(key).info(key) : null;
        return info == null ? options.expiry() : info.expiresAtMillis();
    }

    private static void reply(
            SetOptions options, @Nullable PinnedValue older, boolean stored, Replies out, Outcome outcome) {
        if (!options.get()) {
            outcome.reply(stored);
        } else if (older == null) {
            out.nil();
        } else {
            out.value(older, 0, older.bytes());
        }
    }

    private static void close(@Nullable PinnedValue value) {
        if (value != null) {
            value.close();
        }
    }

    /// Says that the value was not stored; to LMCache's native client, which cannot hear that, says OK. The older
    /// value goes then: it may not be read after its successor was acknowledged.
    private void refuse(RespSession session, Request request, String reply, Replies out) {
        if (session.maybeNative() && request.count() == 3) {
            byte[] key = request.bytes(1);
            if (Keys.possible(key)) {
                reach.of(key).delete(key);
            }
            stats.droppedAfterOk.increment();
            dropped.log(reply, key.length, reach.of(key).keyspaceLimits().valueBytes());
            out.ok();
        } else {
            stats.errors.increment();
            out.error(reply);
        }
    }
}
