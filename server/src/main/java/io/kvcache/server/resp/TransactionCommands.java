package io.kvcache.server.resp;

import java.util.List;
import java.util.Set;

/// MULTI, EXEC, DISCARD, WATCH, UNWATCH: what clients send around a pipeline when nobody tells
/// them not to.
///
/// EXEC runs what was queued in order and answers all of it together; it does not keep other
/// clients out meanwhile. So WATCH is refused: who asks for it counts on exactly that.
final class TransactionCommands {

    /// What is not queued but run at once.
    private static final Set<String> IMMEDIATE = Set.of("EXEC", "DISCARD", "MULTI", "WATCH", "RESET", "QUIT");

    /// What may not be part of a transaction, as it changes who asks or how replies look, or
    /// takes minutes.
    private static final Set<String> NOT_QUEUEABLE = Set.of("AUTH", "HELLO", "SAVE");

    private TransactionCommands() {}

    static List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
        return List.of(
                CommandSpec.of("MULTI", 1, "noscript fast", none, TransactionCommands::multi),
                CommandSpec.of("EXEC", 1, "noscript", none, (session, request, out) -> {
                    session.transaction().run(out);
                }),
                CommandSpec.of("DISCARD", 1, "noscript fast", none, (session, request, out) -> {
                    session.transaction().discard();
                    out.writeOk();
                }),
                CommandSpec.of(
                        "WATCH", -2, "noscript fast", CommandSpec.ArgumentPositions.ALL, TransactionCommands::watch),
                CommandSpec.of("UNWATCH", 1, "noscript fast", none, (session, request, out) -> out.writeOk()));
    }

    /// Whether a command waits for EXEC, when a transaction is open.
    static boolean isQueued(String name) {
        return !IMMEDIATE.contains(name);
    }

    /// Whether a command may wait for EXEC.
    static boolean isQueueable(String name) {
        return !NOT_QUEUEABLE.contains(name);
    }

    private static void multi(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        if (session.transaction().isOpen()) {
            throw new CommandException("ERR MULTI calls can not be nested");
        }
        session.transaction().begin();
        out.writeOk();
    }

    private static void watch(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        throw new CommandException("ERR WATCH is not served: EXEC here does not keep other clients out, so nothing"
                + " can be promised of the keys. SET with NX or XX looks and stores at one moment");
    }
}
