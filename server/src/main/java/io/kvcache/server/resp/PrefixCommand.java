package io.kvcache.server.resp;

import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.HintLimits.HintNumber;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.time.Duration;
import java.util.List;

/// KV.PREFIX: counts the leading keys that are here, and pins them. Redis has no such command.
final class PrefixCommand {

    private static final int FIRST_KEY = 2;

    private final KeyspaceRouter keyspaceRouter;

    PrefixCommand(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        return List.of(CommandSpec.of(
                "KV.PREFIX", -3, "fast", new CommandSpec.ArgumentPositions(FIRST_KEY, -1, 1), this::pinPrefix));
    }

    private void pinPrefix(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        try {
            HintLimits.requirePrefixKeys(request.count() - FIRST_KEY);
            Duration pinTime = HintLimits.prefixPin(request.argumentLong(1, HintNumber.PREFIX_MILLIS));
            keyspaceRouter.pinPrefix(
                    HintCommand.keys(request, FIRST_KEY), pinTime, session::yieldLoop, out::writeInteger);
        } catch (IllegalArgumentException mistake) {
            throw new CommandException("ERR " + mistake.getMessage());
        }
    }
}
