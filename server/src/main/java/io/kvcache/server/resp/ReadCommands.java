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

    private final KeyspaceRouter reach;

    ReadCommands(KeyspaceRouter reach) {
        this.reach = reach;
    }

    List<CommandSpec> commands() {
        return List.of(
                CommandSpec.of(
                        "GET",
                        2,
                        "readonly fast",
                        CommandSpec.Places.FIRST,
                        (session, request, out) -> find(session, request.bytes(1), value -> reply(value, out))),
                CommandSpec.of("MGET", -2, "readonly fast", CommandSpec.Places.ALL, this::mget),
                CommandSpec.of("GETRANGE", 4, "readonly", CommandSpec.Places.FIRST, this::getRange),
                CommandSpec.of("SUBSTR", 4, "readonly", CommandSpec.Places.FIRST, this::getRange),
                CommandSpec.of("STRLEN", 2, "readonly fast", CommandSpec.Places.FIRST, this::strlen));
    }

    private ReadResult read(RespSession session, byte[] key) {
        if (!Keys.possible(key)) {
            return ReadResult.MISS;
        }
        Keyspace keyspace = reach.of(key);
        ReadResult reading = keyspace.read(key);
        session.runs().forKeyspace(keyspace).onRead(key, reading.outcome() != ReadResult.Outcome.MISS);
        return reading;
    }

    /// Goes on with a value, or with null, now or when it has come from disk.
    private void find(RespSession session, byte[] key, Consumer<@Nullable PinnedValue> next) {
        look(session, key, reading -> next.accept(reading.value()));
    }

    /// The same for who has to know why there is no value.
    void look(RespSession session, byte[] key, Consumer<ReadResult> next) {
        ReadResult reading = read(session, key);
        if (reading.outcome() == ReadResult.Outcome.ON_DISK) {
            session.awaitValue(reach.of(key), key, next);
        } else {
            next.accept(reading);
        }
    }

    private static void reply(@Nullable PinnedValue value, Replies out) {
        if (value == null) {
            out.nil();
        } else {
            out.value(value, 0, value.bytes());
        }
    }

    private void mget(RespSession session, Request request, Replies out) {
        out.array(request.count() - 1);
        mget(session, request, out, 1);
    }

    /// Takes values one by one as the client reads them, so that it holds no more than it can take.
    private void mget(RespSession session, Request request, Replies out, int from) {
        for (int i = from; i < request.count(); i++) {
            if (!session.connection().channel().isWritable()) {
                int next = i;
                session.whenWritable(() -> mget(session, request, out, next));
                return;
            }
            byte[] key = request.bytes(i);
            ReadResult reading = read(session, key);
            if (reading.outcome() == ReadResult.Outcome.ON_DISK) {
                int next = i + 1;
                session.awaitValue(reach.of(key), key, come -> {
                    reply(come.value(), out);
                    mget(session, request, out, next);
                });
                return;
            }
            reply(reading.value(), out);
        }
    }

    private void getRange(RespSession session, Request request, Replies out) throws CommandException {
        long start = request.integer(2);
        long end = request.integer(3);
        find(session, request.bytes(1), value -> range(value, start, end, out));
    }

    private static void range(@Nullable PinnedValue value, long start, long end, Replies out) {
        if (value == null) {
            out.bulk(new byte[0]);
            return;
        }
        long bytes = value.bytes();
        long from = start < 0 ? Math.max(0, bytes + start) : start;
        long to = Math.min(bytes - 1, end < 0 ? bytes + end : end);
        if ((start < 0 && end < 0 && start > end) || from > to) {
            value.close();
            out.bulk(new byte[0]);
        } else {
            out.value(value, from, to - from + 1);
        }
    }

    private void strlen(RespSession session, Request request, Replies out) {
        byte[] key = request.bytes(1);
        KeyInfo info = Keys.possible(key) ? reach.of(key).info(key) : null;
        out.integer(info == null ? 0 : info.bytes());
    }
}
