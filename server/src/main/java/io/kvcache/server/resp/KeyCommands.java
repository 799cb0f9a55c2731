package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.KeyPage;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.CommandSpec.Command;
import io.kvcache.server.resp.RespProtocol.RespStats;
import io.kvcache.server.resp.RespRequest.RequestMemory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;

/// EXISTS, TOUCH, DEL, UNLINK, TYPE, MEMORY USAGE.
final class KeyCommands {

    /// Slots are cut to this.
    private static final long PAGE = 4096;

    private final KeyspaceRouter keyspaceRouter;

    KeyCommands(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions all = CommandSpec.ArgumentPositions.ALL;
        return List.of(
                CommandSpec.of("EXISTS", -2, "readonly fast", all, this::exists),
                CommandSpec.of("TOUCH", -2, "readonly fast", all, countingCommand(Keyspace::touch)),
                CommandSpec.of("DEL", -2, "write", all, this::delete),
                CommandSpec.of("UNLINK", -2, "write fast", all, this::delete),
                CommandSpec.of("TYPE", 2, "readonly fast", CommandSpec.ArgumentPositions.FIRST, this::type),
                CommandSpec.of("MEMORY", -2, "readonly", new CommandSpec.ArgumentPositions(2, 2, 1), this::memory));
    }

    private void exists(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        Command each = countingCommand(
                (keyspace, key) -> session.sequenceTracker(keyspace).exists(key));
        each.run(session, request, out);
    }

    private Command countingCommand(BiPredicate<Keyspace, byte[]> each) {
        return (session, request, out) -> {
            long count = 0;
            for (int i = 1; i < request.count(); i++) {
                byte[] key = request.argument(i);
                count += Keyspace.isValidKey(key) && each.test(keyspaceRouter.of(key), key) ? 1 : 0;
            }
            out.writeInteger(count);
        };
    }

    /// A client that names both halves of a value is answered 2, as by Redis.
    private void delete(RespSession session, RespRequest request, RespEncoder out) {
        boolean[] wanted = new boolean[request.count()];
        for (int i = 1; i < request.count(); i++) {
            byte[] key = request.argument(i);
            wanted[i] = Keyspace.isValidKey(key) && !keyspaceRouter.of(key).isStale(key);
        }
        long count = 0;
        for (int i = 1; i < request.count(); i++) {
            byte[] key = request.argument(i);
            count += wanted[i] && keyspaceRouter.of(key).deleteUnchecked(key) ? 1 : 0;
        }
        out.writeInteger(count);
    }

    private void type(RespSession session, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(1);
        out.writeSimple(Keyspace.isValidKey(key) && keyspaceRouter.of(key).info(key) != null ? "string" : "none");
    }

    private void memory(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        if (!request.argumentUpperCase(1).equals("USAGE")) {
            throw new CommandException("ERR unknown subcommand '" + request.argumentText(1) + "'. It takes USAGE.");
        }
        if (request.count() != 3
                && !(request.count() == 5 && request.argumentUpperCase(3).equals("SAMPLES"))) {
            throw new CommandException(CommandException.SYNTAX);
        }
        byte[] key = request.argument(2);
        KeyInfo info = Keyspace.isValidKey(key) ? keyspaceRouter.of(key).info(key) : null;
        if (info == null) {
            out.writeNull();
        } else {
            out.writeInteger(info.storedBytes(key.length, PAGE));
        }
    }

    /// SCAN, KEYS, DBSIZE, FLUSHDB: of the client's own values, but for a pattern that names another tenant.
    static final class ScanCommands {

        private static final int DEFAULT_COUNT = 10;

        /// Keys looked at in one SCAN.
        private static final int MAX_COUNT = 10_000;

        /// Keys asked for at once.
        private static final int PAGE_KEYS = 256;

        /// Matching steps before other connections of the loop have their turn: a millisecond or two.
        private static final long STEPS_PER_TURN = 1 << 20;

        /// Steps that a key takes beside its match.
        private static final int KEY_STEPS = 256;

        /// Bytes of all keys that KEYS answers at once, as the reply is made in memory.
        private static final long MAX_KEYS_BYTES = 32L << 20;

        private final KeyspaceRouter keyspaceRouter;
        private final RespStats stats;
        private final ByteBudget heapBudget;

        ScanCommands(KeyspaceRouter keyspaceRouter, RespStats stats) {
            this.keyspaceRouter = keyspaceRouter;
            this.stats = stats;
            heapBudget = stats.argumentMemory;
        }

        /// A listing that goes on turn by turn, so that however many keys and however long a pattern others of the
        /// same loop are not held up.
        private final class KeyScan {

            private final RespSession session;
            private final Keyspace keyspace;
            private final @Nullable Glob glob;
            private final CompletionHandler completionHandler;
            private final List<byte[]> found = new ArrayList<>();
            private long cursor;
            private long left;
            private long foundBytes;
            private boolean tooLarge;

            KeyScan(
                    RespSession session,
                    byte @Nullable [] pattern,
                    long cursor,
                    long left,
                    CompletionHandler completionHandler)
                    throws CommandException {
                this.session = session;
                keyspace = keyspaceRouter.keyspaceOfPattern(pattern);
                glob = pattern == null || new String(pattern, StandardCharsets.ISO_8859_1).equals("*")
                        ? null
                        : new Glob(pattern);
                this.cursor = cursor;
                this.left = left;
                this.completionHandler = completionHandler;
            }

            void resume() {
                long steps = STEPS_PER_TURN;
                do {
                    KeyPage page = keyspace.scan(cursor, (int) Math.min(left, PAGE_KEYS));
                    for (byte[] key : page.keys()) {
                        matchKey(key);
                        steps -= KEY_STEPS + (long) key.length * (glob == null ? 0 : glob.size());
                    }
                    left -= PAGE_KEYS;
                    cursor = page.next();
                } while (cursor != 0 && left > 0 && steps > 0 && !tooLarge);
                if (cursor != 0 && left > 0 && !tooLarge) {
                    session.handler().yieldLoop(this::resume, this::release);
                    return;
                }
                completionHandler.onComplete(this);
                release();
            }

            private void matchKey(byte[] key) {
                if (tooLarge || (glob != null && !glob.matches(key))) {
                    return;
                }
                int bytes = key.length + RequestMemory.ARGUMENT_OVERHEAD_BYTES;
                tooLarge = foundBytes + bytes > MAX_KEYS_BYTES || !heapBudget.tryAcquire(bytes);
                if (!tooLarge) {
                    foundBytes += bytes;
                    found.add(key);
                }
            }

            private void release() {
                heapBudget.release(foundBytes);
                foundBytes = 0;
            }
        }

        private interface CompletionHandler {
            void onComplete(KeyScan keyScan);
        }

        List<CommandSpec> commands() {
            CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
            return List.of(
                    CommandSpec.of("SCAN", -2, "readonly", none, this::scan),
                    CommandSpec.of("KEYS", 2, "readonly", none, this::keys),
                    CommandSpec.of(
                            "DBSIZE",
                            1,
                            "readonly fast",
                            none,
                            (session, request, out) -> out.writeInteger(
                                    keyspaceRouter.ownKeyspace().count())),
                    CommandSpec.of("FLUSHDB", -1, "write", none, this::flush),
                    CommandSpec.of("FLUSHALL", -1, "write", none, this::flush));
        }

        private void scan(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            long cursor = cursor(request);
            byte[] pattern = null;
            int count = DEFAULT_COUNT;
            boolean strings = true;
            for (int i = 2; i < request.count(); i += 2) {
                if (i + 1 == request.count()) {
                    throw new CommandException(CommandException.SYNTAX);
                }
                switch (request.argumentUpperCase(i)) {
                    case "MATCH" -> pattern = request.argument(i + 1);
                    case "COUNT" -> count = count(request.argumentLong(i + 1));
                    case "TYPE" -> strings = request.argumentUpperCase(i + 1).equals("STRING");
                    default -> throw new CommandException(CommandException.SYNTAX);
                }
            }
            boolean listed = strings;
            new KeyScan(session, pattern, cursor, count, keyScan -> {
                        out.beginArray(2);
                        out.writeBulk(Long.toString(keyScan.cursor));
                        array(listed ? keyScan.found : List.of(), out);
                    })
                    .resume();
        }

        private static long cursor(RespRequest request) throws CommandException {
            try {
                long cursor = request.argumentLong(1);
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
            return (int) Math.min(asked, MAX_COUNT);
        }

        private void keys(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            new KeyScan(session, request.argument(1), 0, Long.MAX_VALUE, keyScan -> {
                        if (keyScan.tooLarge) {
                            stats.errors.increment();
                            out.writeError("ERR KEYS finds more than " + (MAX_KEYS_BYTES >> 20)
                                    + " MiB of keys, or others are answered as much at the moment; use SCAN");
                        } else {
                            array(keyScan.found, out);
                        }
                    })
                    .resume();
        }

        private static void array(List<byte[]> keys, RespEncoder out) {
            out.beginArray(keys.size());
            keys.forEach(out::writeBulk);
        }

        private void flush(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            if (request.count() > 2
                    || (request.count() == 2 && !List.of("SYNC", "ASYNC").contains(request.argumentUpperCase(1)))) {
                throw new CommandException(CommandException.SYNTAX);
            }
            keyspaceRouter.ownKeyspace().clear();
            out.writeOk();
        }
    }
}
