package io.kvcache.server.lease;

import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.Problem;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.TensorNote;
import io.kvcache.server.net.SlotBytes;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;

/// PUT of a value that was not there. Clients take 200 and 409 alike: the value is there then.
final class KvWrite implements Exchange {

    private final PendingPut put;

    KvWrite(PendingPut put) {
        this.put = put;
    }

    static Problem isHere() {
        return Problem.named(HttpResponseStatus.CONFLICT, "already-there", "the value is there already");
    }

    @Override
    public void body(ByteBuf part) {
        if (put.state() == PendingPut.State.WRITING) {
            SlotBytes.read(part, part.readableBytes(), put::room);
        } else {
            part.skipBytes(part.readableBytes());
        }
    }

    @Override
    public void answer(HttpReplies out) {
        switch (put.state()) {
            case WRITING -> {
                if (put.missing() > 0) {
                    out.problem(new Problem(HttpResponseStatus.BAD_REQUEST, "the body is shorter than was said"));
                } else if (put.commit(0, TensorNote.NONE, Condition.IF_ABSENT)) {
                    out.empty(HttpResponseStatus.OK);
                } else {
                    out.problem(isHere());
                }
            }
            case REFUSED ->
                out.problem(new Problem(
                        HttpResponseStatus.INSUFFICIENT_STORAGE, "all that could be evicted is in use; try again"));
        }
    }

    @Override
    public void close() {
        put.close();
    }
}
