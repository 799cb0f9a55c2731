package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// INCR, DECR, INCRBY and DECRBY: a value that is a whole number of 64 bits is replaced by another, and no step of
/// a client is lost. A key that is not here counts as 0, and so may one that was evicted meanwhile.
final class CounterCommands {

    /// Changes by other clients between a read and the write that follows it.
    private static final int MAX_TRIES = 64;

    /// Longer values cannot be numbers.
    private static final int MAX_DIGITS = 20;

    private static final String OVERFLOW = "ERR increment or decrement would overflow";

    private final KeyspaceRouter keyspaceRouter;
    private final ReadCommands reads;
    private final RespStats stats;

    CounterCommands(KeyspaceRouter keyspaceRouter, ReadCommands reads, RespStats stats) {
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

    private void add(RespSession session, byte[] key, long step, RespEncoder out, int tries) throws CommandException {
        String rejection = CommandTable.keyRejection(keyspaceRouter.of(key), key);
        if (rejection != null) {
            throw new CommandException(rejection);
        }
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
