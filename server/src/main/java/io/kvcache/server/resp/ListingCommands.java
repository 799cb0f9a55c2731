package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyPage;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.quota.ByteBudget;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// SCAN, KEYS, DBSIZE, FLUSHDB: of the client's own values, but for a pattern that names another tenant.
final class ListingCommands {

    private static final int DEFAULT_COUNT = 10;

    /// Keys looked at in one SCAN.
    private static final int MOST_COUNT = 10_000;

    /// Keys asked for at once.
    private static final int AT_ONCE = 256;

    /// What is done before others of the same loop have their turn, in steps of a match: a millisecond or two.
    private static final long TURN_STEPS = 1 << 20;

    /// Steps that a key takes beside its match.
    private static final int KEY_STEPS = 256;

    /// Bytes of all keys that KEYS answers at once, as the reply is made in memory.
    private static final long MOST_KEYS_BYTES = 32L << 20;

    private final KeyspaceRouter reach;
    private final RespStats stats;
    private final ByteBudget heap;

    ListingCommands(KeyspaceRouter reach, RespStats stats) {
        this.reach = reach;
        this.stats = stats;
        heap = stats.arguments;
    }

    /// A listing that goes on turn by turn, so that however many keys and however long a pattern others of the same
    /// loop are not held up.
    private final class Listing {

        private final RespSession session;
        private final Keyspace keyspace;
        private final @Nullable Glob glob;
        private final Done done;
        private final List<byte[]> found = new ArrayList<>();
        private long cursor;
        private long left;
        private long foundBytes;
        private boolean tooMuch;

        Listing(RespSession session, byte @Nullable [] pattern, long cursor, long left, Done done)
                throws CommandException {
            this.session = session;
            keyspace = reach.keyspaceOfPattern(pattern);
            glob = pattern == null || new String(pattern, StandardCharsets.ISO_8859_1).equals("*")
                    ? null
                    : new Glob(pattern);
            this.cursor = cursor;
            this.left = left;
            this.done = done;
        }

        void goOn() {
            long steps = TURN_STEPS;
            do {
                KeyPage page = keyspace.scan(cursor, (int) Math.min(left, AT_ONCE));
                for (byte[] key : page.keys()) {
                    look(key);
                    steps -= KEY_STEPS + (long) key.length * (glob == null ? 0 : glob.words());
                }
                left -= AT_ONCE;
                cursor = page.next();
            } while (cursor != 0 && left > 0 && steps > 0 && !tooMuch);
            if (cursor != 0 && left > 0 && !tooMuch) {
                session.awaitTurn(this::goOn, this::release);
                return;
            }
            done.with(this);
            release();
        }

        private void look(byte[] key) {
            if (tooMuch || (glob != null && !glob.matches(key))) {
                return;
            }
            int bytes = key.length + Arguments.EACH_BYTES;
            tooMuch = foundBytes + bytes > MOST_KEYS_BYTES || !heap.tryAcquire(bytes);
            if (!tooMuch) {
                foundBytes += bytes;
                found.add(key);
            }
        }

        private void release() {
            heap.release(foundBytes);
            foundBytes = 0;
        }
    }

    private interface Done {
        void with(Listing listing);
    }

    List<CommandSpec> commands() {
        CommandSpec.Places none = CommandSpec.Places.NONE;
        return List.of(
                CommandSpec.of("SCAN", -2, "readonly", none, this::scan),
                CommandSpec.of("KEYS", 2, "readonly", none, this::keys),
                CommandSpec.of(
                        "DBSIZE",
                        1,
                        "readonly fast",
                        none,
                        (session, request, out) ->
                                out.integer(reach.ownKeyspace().count())),
                CommandSpec.of("FLUSHDB", -1, "write", none, this::flush),
                CommandSpec.of("FLUSHALL", -1, "write", none, this::flush));
    }

    private void scan(RespSession session, Request request, Replies out) throws CommandException {
        long cursor = cursor(request);
        byte[] pattern = null;
        int count = DEFAULT_COUNT;
        boolean strings = true;
        for (int i = 2; i < request.count(); i += 2) {
            if (i + 1 == request.count()) {
                throw new CommandException(CommandException.SYNTAX);
            }
            switch (request.word(i)) {
                case "MATCH" -> pattern = request.bytes(i + 1);
                case "COUNT" -> count = count(request.integer(i + 1));
                case "TYPE" -> strings = request.word(i + 1).equals("STRING");
                default -> throw new CommandException(CommandException.SYNTAX);
            }
        }
        boolean listed = strings;
        new Listing(session, pattern, cursor, count, listing -> {
                    out.array(2);
                    out.bulk(Long.toString(listing.cursor));
                    array(listed ? listing.found : List.of(), out);
                })
                .goOn();
    }

    private static long cursor(Request request) throws CommandException {
        try {
            long cursor = request.integer(1);
            if (cursor >= 0) {
                return cursor;
            }
        } catch (CommandException _) {
            // said below
        }
        throw new CommandException("ERR invalid cursor");
    }

    private static int count(long asked) throws CommandException {
        if (asked < 1) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return (int) Math.min(asked, MOST_COUNT);
    }

    private void keys(RespSession session, Request request, Replies out) throws CommandException {
        new Listing(session, request.bytes(1), 0, Long.MAX_VALUE, listing -> {
                    if (listing.tooMuch) {
                        stats.errors.increment();
                        out.error("ERR KEYS finds more than " + (MOST_KEYS_BYTES >> 20)
                                + " MiB of keys, or others are answered as much at the moment; use SCAN");
                    } else {
                        array(listing.found, out);
                    }
                })
                .goOn();
    }

    private static void array(List<byte[]> keys, Replies out) {
        out.array(keys.size());
        keys.forEach(out::bulk);
    }

    private void flush(RespSession session, Request request, Replies out) throws CommandException {
        if (request.count() > 2
                || (request.count() == 2 && !List.of("SYNC", "ASYNC").contains(request.word(1)))) {
            throw new CommandException(CommandException.SYNTAX);
        }
        reach.ownKeyspace().clear();
        out.ok();
    }
}
