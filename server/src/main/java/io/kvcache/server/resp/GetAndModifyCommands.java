package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// GETDEL and GETEX: reads that change the very value that they have read, and not one that came
/// after it.
final class GetAndModifyCommands {

    /// Successors of a value that are stored while it is being taken.
    private static final int MAX_TRIES = 8;

    private static final String BUSY = "TRYAGAIN too much is being sent; the value was not read, and not changed";
    private static final String CONTENDED = "TRYAGAIN other clients change this key all the time";

    private final KeyspaceRouter keyspaceRouter;
    private final ReadCommands reads;
    private final RespStats stats;

    GetAndModifyCommands(KeyspaceRouter keyspaceRouter, ReadCommands reads, RespStats stats) {
        this.keyspaceRouter = keyspaceRouter;
        this.reads = reads;
        this.stats = stats;
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions key = CommandSpec.ArgumentPositions.FIRST;
        return List.of(
                CommandSpec.of("GETDEL", 2, "write fast", key, (session, request, out) -> {
                    getAndDelete(session, request.argument(1), out, MAX_TRIES);
                }),
                CommandSpec.of("GETEX", -2, "write fast", key, this::getEx));
    }

    /// Of several who take a key at one time, one gets its value.
    private void getAndDelete(RespClientState session, byte[] key, RespEncoder out, int tries) {
        reads.withReadResult(session, key, readResult -> {
            PinnedValue value = valueOrReply(readResult, out);
            if (value == null) {
                return;
            }
            if (keyspaceRouter.of(key).delete(key, value)) {
                out.writeValue(value, 0, value.bytes());
                return;
            }
            value.close();
            if (tries > 1) {
                getAndDelete(session, key, out, tries - 1);
            } else {
                reject(CONTENDED, out);
            }
        });
    }

    private void getEx(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        boolean changes = request.count() > 2;
        long now = keyspaceRouter.ownKeyspace().nowMillis();
        long expiry = changes ? expiry(request, now) : 0;
        byte[] key = request.argument(1);
        reads.withReadResult(session, key, readResult -> {
            PinnedValue value = valueOrReply(readResult, out);
            if (value == null) {
                return;
            }
            Keyspace keyspace = keyspaceRouter.of(key);
            if (changes && expiry != 0 && expiry <= now) {
                keyspace.delete(key, value);
            } else if (changes) {
                keyspace.expireAt(key, expiry, value);
            }
            out.writeValue(value, 0, value.bytes());
        });
    }

    private static long expiry(RespRequest request, long now) throws CommandException {
        String word = request.argumentUpperCase(2);
        if (word.equals("PERSIST") && request.count() == 3) {
            return 0;
        }
        if (!List.of("EX", "PX", "EXAT", "PXAT").contains(word) || request.count() != 4) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return ExpiryParser.parse(word, request.argumentLong(3), now, "getex");
    }

    /// The value, or null when the reply has been that there is none, or none now.
    private @Nullable PinnedValue valueOrReply(ReadResult readResult, RespEncoder out) {
        switch (readResult.outcome()) {
            case HIT -> {}
            case MISS -> out.writeNull();
            case THROTTLED -> reject(BUSY, out);
            case ON_DISK, TIMED_OUT -> reject(CommandException.TIMED_OUT, out);
        }
        return readResult.value();
    }

    private void reject(String reply, RespEncoder out) {
        stats.errors.increment();
        out.writeError(reply);
    }
}
