package io.kvcache.server.http;

import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.TensorNote;
import io.kvcache.server.net.SlotBytes;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;

/// PUT of an object.
final class ObjectWrite implements Exchange {

    private final PendingPut put;

    ObjectWrite(PendingPut put) {
        this.put = put;
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
                    return;
                }
                put.commit(0, TensorNote.NONE, Condition.ALWAYS);
                out.empty(HttpResponseStatus.NO_CONTENT);
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
