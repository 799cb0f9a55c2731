package io.kvcache.server.http;

import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;

/// PUT of an object.
final class PutObjectHandler implements HttpRequestHandler {

    private final PendingPut put;

    PutObjectHandler(PendingPut put) {
        this.put = put;
    }

    @Override
    public void onBody(ByteBuf part) {
        if (put.state() == PendingPut.State.WRITING) {
            ZeroCopyIo.read(part, part.readableBytes(), put::writableBuffer);
        } else {
            part.skipBytes(part.readableBytes());
        }
    }

    @Override
    public void respond(HttpResponder out) {
        switch (put.state()) {
            case WRITING -> {
                if (put.remainingBytes() > 0) {
                    out.sendProblem(
                            new ProblemDetails(HttpResponseStatus.BAD_REQUEST, "the body is shorter than was said"));
                    return;
                }
                put.commit(0, TensorMetadata.NONE, Condition.ALWAYS);
                out.sendEmpty(HttpResponseStatus.NO_CONTENT);
            }
            case REJECTED ->
                out.sendProblem(new ProblemDetails(
                        HttpResponseStatus.INSUFFICIENT_STORAGE, "all that could be evicted is in use; try again"));
        }
    }

    @Override
    public void close() {
        put.close();
    }
}
