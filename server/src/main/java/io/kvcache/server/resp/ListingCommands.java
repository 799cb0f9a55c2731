package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyPage;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Reach;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/// SCAN, KEYS, DBSIZE, FLUSHDB: of the client's own values, but for a pattern that names another tenant.
final class ListingCommands {

    private static final int DEFAULT_COUNT = 10;

    /// Keys looked at in one SCAN: some milliseconds.
    private static final int MOST_COUNT = 10_000;

    private final Reach reach;

    ListingCommands(Reach reach) {
        this.reach = reach;
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
                        (session, request, out) -> out.integer(reach.own().count())),
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
        Glob glob = pattern == null ? null : new Glob(pattern);
        KeyPage page = reach.listed(pattern).scan(cursor, count);
        List<byte[]> found = new ArrayList<>();
        for (byte[] key : page.keys()) {
            if (strings && (glob == null || glob.matches(key))) {
                found.add(key);
            }
        }
        out.array(2);
        out.bulk(Long.toString(page.next()));
        array(found, out);
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

    private void keys(RespSession session, Request request, Replies out) {
        Glob pattern = new Glob(request.bytes(1));
        Keyspace keyspace = reach.listed(request.bytes(1));
        boolean all = new String(request.bytes(1), StandardCharsets.ISO_8859_1).equals("*");
        List<byte[]> found = new ArrayList<>();
        long cursor = 0;
        do {
            KeyPage page = keyspace.scan(cursor, MOST_COUNT);
            for (byte[] key : page.keys()) {
                if (all || pattern.matches(key)) {
                    found.add(key);
                }
            }
            cursor = page.next();
        } while (cursor != 0);
        array(found, out);
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
        reach.own().clear();
        out.ok();
    }
}
