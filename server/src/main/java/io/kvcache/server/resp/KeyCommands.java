package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.List;
import java.util.function.BiPredicate;

/// EXISTS, TOUCH, DEL, UNLINK, TYPE, MEMORY USAGE.
final class KeyCommands {

    /// Slots are cut to this.
    private static final long PAGE = 4096;

    private final KeyspaceRouter reach;

    KeyCommands(KeyspaceRouter reach) {
        this.reach = reach;
    }

    List<CommandSpec> commands() {
        CommandSpec.Places all = CommandSpec.Places.ALL;
        return List.of(
                CommandSpec.of("EXISTS", -2, "readonly fast", all, this::exists),
                CommandSpec.of("TOUCH", -2, "readonly fast", all, counting(Keyspace::touch)),
                CommandSpec.of("DEL", -2, "write", all, this::delete),
                CommandSpec.of("UNLINK", -2, "write fast", all, this::delete),
                CommandSpec.of("TYPE", 2, "readonly fast", CommandSpec.Places.FIRST, this::type),
                CommandSpec.of("MEMORY", -2, "readonly", new CommandSpec.Places(2, 2, 1), this::memory));
    }

    private void exists(RespSession session, Request request, Replies out) throws CommandException {
        Command each =
                counting((keyspace, key) -> session.runs().forKeyspace(keyspace).exists(key));
        each.run(session, request, out);
    }

    private Command counting(BiPredicate<Keyspace, byte[]> each) {
        return (session, request, out) -> {
            long count = 0;
            for (int i = 1; i < request.count(); i++) {
                byte[] key = request.bytes(i);
                count += Keys.possible(key) && each.test(reach.of(key), key) ? 1 : 0;
            }
            out.integer(count);
        };
    }

    /// A client that names both halves of a value is answered 2, as by Redis.
    private void delete(RespSession session, Request request, Replies out) {
        boolean[] wanted = new boolean[request.count()];
        for (int i = 1; i < request.count(); i++) {
            byte[] key = request.bytes(i);
            wanted[i] = Keys.possible(key) && !reach.of(key).isStale(key);
        }
        long count = 0;
        for (int i = 1; i < request.count(); i++) {
            byte[] key = request.bytes(i);
            count += wanted[i] && reach.of(key).deleteUnchecked(key) ? 1 : 0;
        }
        out.integer(count);
    }

    private void type(RespSession session, Request request, Replies out) {
        byte[] key = request.bytes(1);
        out.simple(Keys.possible(key) && reach.of(key).info(key) != null ? "string" : "none");
    }

    private void memory(RespSession session, Request request, Replies out) throws CommandException {
        if (!request.word(1).equals("USAGE")) {
            throw new CommandException("ERR unknown subcommand '" + request.text(1) + "'. It takes USAGE.");
        }
        if (request.count() != 3 && !(request.count() == 5 && request.word(3).equals("SAMPLES"))) {
            throw new CommandException(CommandException.SYNTAX);
        }
        byte[] key = request.bytes(2);
        KeyInfo info = Keys.possible(key) ? reach.of(key).info(key) : null;
        if (info == null) {
            out.nil();
        } else {
            out.integer(info.storedBytes(key.length, PAGE));
        }
    }
}
