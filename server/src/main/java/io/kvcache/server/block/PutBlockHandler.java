package io.kvcache.server.block;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
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
        switch (writer.seal()) {
            case SEALED -> {
                quotaCharge.commit();
                out.sendEmpty(HttpResponseStatus.CREATED);
            }
            case PENDING -> out.sendEmpty(HttpResponseStatus.ACCEPTED);
            case DROPPED ->
                out.sendProblem(ProblemDetails.withType(
                        HttpResponseStatus.CONFLICT,
                        "dropped",
                        "the block, or one before it, was dropped while it was written"));
        }
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            writer.close();
            quotaCharge.close();
        }
    }

    /// Returns the handler of a PUT that has nothing to write.
    static HttpRequestHandler handlerFor(PutOutcome outcome) {
        return switch (outcome) {
            case PRESENT -> (HttpRequestHandler.BodylessHandler) out -> out.sendEmpty(HttpResponseStatus.NO_CONTENT);
            case RESERVED, BUSY ->
                (HttpRequestHandler.BodylessHandler) out -> out.sendEmpty(HttpResponseStatus.ACCEPTED);
            case FOREIGN ->
                ProblemDetails.withType(
                                HttpResponseStatus.CONFLICT,
                                "foreign-key",
                                "another namespace has this block's key already, so the block cannot be stored")
                        .toHandler();
            case NO_PARENT ->
                ProblemDetails.withType(
                                HttpResponseStatus.CONFLICT,
                                "unknown-parent",
                                "the parent block is not stored; put it first, and name it by "
                                        + BlockEndpoint.PARENT_HEADER)
                        .toHandler();
            case NO_ROOM ->
                new ProblemDetails(
                                HttpResponseStatus.INSUFFICIENT_STORAGE,
                                "no room: everything that could be evicted is in use; try again")
                        .toHandler();
            case DECLINED ->
                ProblemDetails.withType(
                                HttpResponseStatus.INSUFFICIENT_STORAGE,
                                "declined",
                                "other blocks are expected to be read sooner than this one; put it again when it is"
                                        + " computed the next time")
                        .toHandler();
        };
    }

    /// Returns the handler of a PUT for which the tenant's quota has no room.
    static HttpRequestHandler quotaExceeded(Namespace namespace) {
        return ProblemDetails.withType(
                        HttpResponseStatus.INSUFFICIENT_STORAGE,
                        "quota",
                        "the quota of tenant " + namespace.tenant() + " is used up, and its blocks are being"
                                + " written, or are this block's ancestors")
                .toHandler();
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
