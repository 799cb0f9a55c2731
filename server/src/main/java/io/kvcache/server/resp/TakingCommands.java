package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// GETDEL and GETEX: reads that change the very value that they have read, and not one that came
/// after it.
final class TakingCommands {

    /// Successors of a value that are stored while it is being taken.
    private static final int MOST_TRIES = 8;

    private static final String BUSY = "TRYAGAIN too much is being sent; the value was not read, and not changed";
    private static final String CHANGING = "TRYAGAIN other clients change this key all the time";

    private final KeyspaceRouter reach;
    private final ReadCommands reads;
    private final RespStats stats;

    TakingCommands(KeyspaceRouter reach, ReadCommands reads, RespStats stats) {
        this.reach = reach;
        this.reads = reads;
        this.stats = stats;
    }

    List<CommandSpec> commands() {
        CommandSpec.Places key = CommandSpec.Places.FIRST;
        return List.of(
                CommandSpec.of("GETDEL", 2, "write fast", key, (session, request, out) -> {
                    take(session, request.bytes(1), out, MOST_TRIES);
                }),
                CommandSpec.of("GETEX", -2, "write fast", key, this::getEx));
    }

    /// Of several who take a key at one time, one gets its value.
    private void take(RespSession session, byte[] key, Replies out, int tries) {
        reads.look(session, key, reading -> {
            PinnedValue value = found(reading, out);
            if (value == null) {
                return;
            }
            if (reach.of(key).delete(key, value)) {
                out.value(value, 0, value.bytes());
                return;
            }
            value.close();
            if (tries > 1) {
                take(session, key, out, tries - 1);
            } else {
                refuse(CHANGING, out);
            }
        });
    }

    private void getEx(RespSession session, Request request, Replies out) throws CommandException {
        boolean changes = request.count() > 2;
        long now = reach.ownKeyspace().nowMillis();
        long expiry = changes ? expiry(request, now) : 0;
        byte[] key = request.bytes(1);
        reads.look(session, key, reading -> {
            PinnedValue value = found(reading, out);
            if (value == null) {
                return;
            }
            Keyspace keyspace = reach.of(key);
            if (changes && expiry != 0 && expiry <= now) {
                keyspace.delete(key, value);
            } else if (changes) {
                keyspace.expireAt(key, expiry, value);
            }
            out.value(value, 0, value.bytes());
        });
    }

    private static long expiry(Request request, long now) throws CommandException {
        String word = request.word(2);
        if (word.equals("PERSIST") && request.count() == 3) {
            return 0;
        }
        if (!List.of("EX", "PX", "EXAT", "PXAT").contains(word) || request.count() != 4) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return Expiry.parse(word, request.integer(3), now, "getex");
    }

    /// The value, or null when the reply has been that there is none, or none now.
    private @Nullable PinnedValue found(ReadResult reading, Replies out) {
        switch (reading.outcome()) {
            case HIT -> {}
            case MISS -> out.nil();
            case THROTTLED -> refuse(BUSY, out);
            case ON_DISK, TIMED_OUT -> refuse(CommandException.LATE, out);
        }
        return reading.value();
    }

    private void refuse(String reply, Replies out) {
        stats.errors.increment();
        out.error(reply);
    }
}
