package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.TensorMetadata;
import java.util.ArrayList;
import java.util.List;

/// MSET: several values, stored when all have arrived, one after the other. Others may see some of them before the
/// rest; with Redis they cannot.
final class MsetCommand {

    private MsetCommand() {}

    static void run(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        if (request.count() % 2 == 0) {
            throw new CommandException("ERR wrong number of arguments for 'mset' command");
        }
        List<PendingPut> puts = new ArrayList<>();
        for (ValueUpload value : request.values()) {
            puts.add(value.put());
        }
        boolean refused = puts.stream().anyMatch(put -> put.state() == PendingPut.State.REJECTED);
        if (refused) {
            throw new CommandException("OOM command not allowed when used memory > 'maxmemory'.");
        }
        for (PendingPut put : puts) {
            put.commit(0, TensorMetadata.NONE, Condition.ALWAYS);
        }
        out.writeOk();
    }
}
