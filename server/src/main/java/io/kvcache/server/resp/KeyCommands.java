package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.resp.CommandSpec.Command;
import java.util.List;
import java.util.function.BiPredicate;

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
}
