package io.kvcache.server.block;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.Problem;
import io.kvcache.server.net.SlotBytes;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.nio.ByteBuffer;

/// PUT of a block that there is room for: its bytes go to their slot as they come.
final class PutBlockHandler implements Exchange {

    /// Who counts the block; closed in every case.
    interface QuotaCharge extends AutoCloseable {

        /// It is in the store.
        void commit();

        @Override
        void close();
    }

    /// Nobody does.
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
        SlotBytes.read(part, part.readableBytes(), () -> buffer);
    }

    @Override
    public void respond(HttpReplies out) {
        if (buffer.hasRemaining()) {
            out.problem(lengthProblem(namespace, buffer.position()));
            return;
        }
        switch (writer.seal()) {
            case SEALED -> {
                quotaCharge.commit();
                out.empty(HttpResponseStatus.CREATED);
            }
            case PENDING -> out.empty(HttpResponseStatus.ACCEPTED);
            case DROPPED ->
                out.problem(Problem.named(
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

    /// What answers a PUT that has nothing to write.
    static Exchange handlerFor(PutOutcome outcome) {
        return switch (outcome) {
            case PRESENT -> (Exchange.Plain) out -> out.empty(HttpResponseStatus.NO_CONTENT);
            case RESERVED, BUSY -> (Exchange.Plain) out -> out.empty(HttpResponseStatus.ACCEPTED);
            case FOREIGN ->
                Problem.named(
                                HttpResponseStatus.CONFLICT,
                                "foreign-key",
                                "another namespace has something under this block's key, so it cannot be put under it")
                        .exchange();
            case NO_PARENT ->
                Problem.named(
                                HttpResponseStatus.CONFLICT,
                                "unknown-parent",
                                "the block before is not here; it is put first, and named by "
                                        + BlockEndpoint.PARENT_HEADER)
                        .exchange();
            case NO_ROOM ->
                new Problem(HttpResponseStatus.INSUFFICIENT_STORAGE, "all that could be evicted is in use; try again")
                        .exchange();
        };
    }

    /// What answers a PUT for which the tenant's quota has no room.
    static Exchange quotaExceeded(Namespace namespace) {
        return Problem.named(
                        HttpResponseStatus.INSUFFICIENT_STORAGE,
                        "quota",
                        "the quota of tenant " + namespace.tenant() + " is used up, and what counts for it is being"
                                + " written, or is what this block is put below")
                .exchange();
    }

    /// A body that is not one block.
    static Problem lengthProblem(Namespace namespace, long bytes) {
        BlockShape shape = NamespaceJson.shapeOf(namespace);
        String whole = "a block of " + namespace.model() + " takes " + shape.bytes() + " bytes (" + shape.describe()
                + "), not " + bytes;
        return bytes < shape.bytes()
                ? Problem.named(
                        HttpResponseStatus.BAD_REQUEST, "partial-block", whole + "; a partial block is never kept")
                : Problem.named(HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "more-than-a-block", whole);
    }
}
