package io.kvcache.server.block;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.net.SlotIo;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.nio.ByteBuffer;

/// PUT of a block that there is room for: its bytes go to their slot as they come.
final class PutBlockHandler implements HttpRequestHandler {

    /// Counts the block against a quota; closed in every case.
    interface QuotaCharge extends AutoCloseable {

        /// It is in the store.
        void commit();

        @Override
        void close();
    }

    /// Counts nothing.
    ///
    /// @param arrived run once the bytes are not on their way any more
    static QuotaCharge withoutQuota(Runnable arrived) {
        return new QuotaCharge() {
            @Override
            public void commit() {}

            @Override
            public void close() {
                arrived.run();
            }
        };
    }

    private final Namespace namespace;
    private final BlockWriter writer;
    private final QuotaCharge quotaCharge;
    private final ByteBuffer buffer;
    private boolean open = true;

    PutBlockHandler(Namespace namespace, BlockWriter writer, QuotaCharge quotaCharge) {
        this.quotaCharge = quotaCharge;
        this.namespace = namespace;
        this.writer = writer;
        buffer = writer.segment().asByteBuffer();
    }

    @Override
    public void onBody(ByteBuf part) {
        SlotIo.read(part, part.readableBytes(), () -> buffer);
    }

    @Override
    public void respond(HttpResponder out) {
        if (buffer.hasRemaining()) {
            out.sendProblem(lengthProblem(namespace, buffer.position()));
            return;
        }
        switch (seal()) {
            case SEALED -> out.sendEmpty(HttpResponseStatus.CREATED);
            case PENDING -> out.sendEmpty(HttpResponseStatus.ACCEPTED);
            case DROPPED -> out.sendProblem(droppedProblem());
        }
    }

    /// Stores the block, all bytes of which have come.
    SealOutcome seal() {
        SealOutcome outcome = writer.seal();
        if (outcome == SealOutcome.SEALED) {
            quotaCharge.commit();
        }
        return outcome;
    }

    static ProblemDetails droppedProblem() {
        return ProblemDetails.withType(
                HttpResponseStatus.CONFLICT,
                "dropped",
                "the block, or one before it, was dropped while it was written, or blocks before it are on disk and"
                        + " did not get into host memory; try again, " + BlockPuts.LONG_CHAIN);
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            writer.close();
            quotaCharge.close();
        }
    }

    /// A body that is not one block.
    static ProblemDetails lengthProblem(Namespace namespace, long bytes) {
        BlockShape shape = NamespaceJson.shapeOf(namespace);
        String whole = "a block of " + namespace.model() + " takes " + shape.bytes() + " bytes (" + shape.describe()
                + "), not " + bytes;
        return bytes < shape.bytes()
                ? ProblemDetails.withType(
                        HttpResponseStatus.BAD_REQUEST, "partial-block", whole + "; a partial block is never kept")
                : ProblemDetails.withType(HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "more-than-a-block", whole);
    }
}
