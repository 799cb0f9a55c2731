package io.kvcache.server.resp;

import io.kvcache.server.keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// GET, MGET, GETRANGE, STRLEN.
final class ReadCommands {

    private final KeyspaceRouter keyspaceRouter;

    ReadCommands(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        return List.of(
                CommandSpec.of(
                        "GET",
                        2,
                        "readonly fast",
                        CommandSpec.ArgumentPositions.FIRST,
                        (session, request, out) -> withValue(session, request.argument(1), value -> reply(value, out))),
                CommandSpec.of("MGET", -2, "readonly fast", CommandSpec.ArgumentPositions.ALL, this::mget),
                CommandSpec.of("GETRANGE", 4, "readonly", CommandSpec.ArgumentPositions.FIRST, this::getRange),
                CommandSpec.of("SUBSTR", 4, "readonly", CommandSpec.ArgumentPositions.FIRST, this::getRange),
                CommandSpec.of("STRLEN", 2, "readonly fast", CommandSpec.ArgumentPositions.FIRST, this::strlen));
    }

    private ReadResult read(RespClientState session, byte[] key) {
        if (!KeyValidator.isValid(key)) {
            return ReadResult.MISS;
        }
        Keyspace keyspace = keyspaceRouter.of(key);
        ReadResult readResult = keyspace.read(key);
        session.sequenceTrackers().forKeyspace(keyspace).onRead(key, readResult.outcome() != ReadResult.Outcome.MISS);
        return readResult;
    }

    /// Goes on with a value, or with null, now or when it has come from disk.
    private void withValue(RespClientState session, byte[] key, Consumer<@Nullable PinnedValue> next) {
        withReadResult(session, key, readResult -> next.accept(readResult.value()));
    }

    /// The same for who has to know why there is no value.
    void withReadResult(RespClientState session, byte[] key, Consumer<ReadResult> next) {
        ReadResult readResult = read(session, key);
        if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
            session.awaitValue(keyspaceRouter.of(key), key, next);
        } else {
            next.accept(readResult);
        }
    }

    private static void reply(@Nullable PinnedValue value, RespEncoder out) {
        if (value == null) {
            out.writeNull();
        } else {
            out.writeValue(value, 0, value.bytes());
        }
    }

    private void mget(RespClientState session, RespRequest request, RespEncoder out) {
        out.beginArray(request.count() - 1);
        mget(session, request, out, 1);
    }

    /// Takes values one by one as the client reads them, so that it holds no more than it can take.
    private void mget(RespClientState session, RespRequest request, RespEncoder out, int from) {
        for (int i = from; i < request.count(); i++) {
            if (!session.connection().channel().isWritable()) {
                int next = i;
                session.awaitWritable(() -> mget(session, request, out, next));
                return;
            }
            byte[] key = request.argument(i);
            ReadResult readResult = read(session, key);
            if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
                int next = i + 1;
                session.awaitValue(keyspaceRouter.of(key), key, come -> {
                    reply(come.value(), out);
                    mget(session, request, out, next);
                });
                return;
            }
            reply(readResult.value(), out);
        }
    }

    private void getRange(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        long start = request.argumentLong(2);
        long end = request.argumentLong(3);
        withValue(session, request.argument(1), value -> range(value, start, end, out));
    }

    private static void range(@Nullable PinnedValue value, long start, long end, RespEncoder out) {
        if (value == null) {
            out.writeBulk(new byte[0]);
            return;
        }
        long bytes = value.bytes();
        long from = start < 0 ? Math.max(0, bytes + start) : start;
        long to = Math.min(bytes - 1, end < 0 ? bytes + end : end);
        if ((start < 0 && end < 0 && start > end) || from > to) {
            value.close();
            out.writeBulk(new byte[0]);
        } else {
            out.writeValue(value, from, to - from + 1);
        }
    }

    private void strlen(RespClientState session, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(1);
        KeyInfo info = KeyValidator.isValid(key) ? keyspaceRouter.of(key).info(key) : null;
        out.writeInteger(info == null ? 0 : info.bytes());
    }
}
