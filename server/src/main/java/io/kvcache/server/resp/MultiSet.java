package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.TensorNote;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/// MSET: several values, stored when all have arrived, one after the other. Others may see some of them before the
/// rest; with Redis they cannot. Of one key that is named twice the first value stays; with Redis the last does.
final class MultiSet {

    private MultiSet() {}

    static void run(RespSession session, Request request, Replies out) throws CommandException {
        if (request.count() % 2 == 0) {
            throw new CommandException("ERR wrong number of arguments for 'mset' command");
        }
        List<PendingPut> puts = new ArrayList<>();
        for (IncomingValue value : request.values()) {
            puts.add(value.put());
        }
        boolean refused = puts.stream().anyMatch(put -> put.state() == PendingPut.State.REFUSED);
        if (refused) {
            throw new CommandException("OOM command not allowed when used memory > 'maxmemory'.");
        }
        Deque<PendingPut> joined = new ArrayDeque<>();
        for (PendingPut put : puts) {
            if (put.state() == PendingPut.State.JOINED) {
                joined.add(put);
            } else {
                put.commit(0, TensorNote.NONE, Condition.ALWAYS);
            }
        }
        finish(session, joined, out);
    }

    /// Own values are stored by now, so two clients that write the same keys cannot wait for each other.
    private static void finish(RespSession session, Deque<PendingPut> joined, Replies out) {
        PendingPut next = joined.poll();
        if (next == null) {
            out.ok();
        } else {
            session.awaitOther(
                    next,
                    () -> finish(session, joined, out),
                    () -> out.error("BUSY another client takes too long to write one of these keys"));
        }
    }
}
