package io.kvcache.server.lease;

import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.TensorMetadata;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;

/// PUT of a value that was not there. Clients take 200 and 409 alike: the value is there then.
final class PutKvHandler implements HttpRequestHandler {

    private final PendingPut put;

    PutKvHandler(PendingPut put) {
        this.put = put;
    }

    static ProblemDetails alreadyExists() {
        return ProblemDetails.withType(HttpResponseStatus.CONFLICT, "already-there", "the value is there already");
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
                } else if (put.commit(0, TensorMetadata.NONE, Condition.IF_ABSENT)) {
                    out.sendEmpty(HttpResponseStatus.OK);
                } else {
                    out.sendProblem(alreadyExists());
                }
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
