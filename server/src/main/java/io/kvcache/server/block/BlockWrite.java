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
final class BlockWrite implements Exchange {

    /// Who counts the block; closed in every case.
    interface Counting extends AutoCloseable {

        /// It is in the store.
        void stored();

        @Override
        void close();
    }

    /// Nobody does.
    ///
    /// @param arrived run once the bytes are not on their way any more
    static Counting uncounted(Runnable arrived) {
        return new Counting() {
            @Override
            public void stored() {}

            @Override
            public void close() {
                arrived.run();
            }
        };
    }

    private final Namespace namespace;
    private final BlockWriter writer;
    private final Counting counting;
    private final ByteBuffer room;
    private boolean open = true;

    BlockWrite(Namespace namespace, BlockWriter writer, Counting counting) {
        this.counting = counting;
        this.namespace = namespace;
        this.writer = writer;
        room = writer.segment().asByteBuffer();
    }

    @Override
    public void body(ByteBuf part) {
        SlotBytes.read(part, part.readableBytes(), () -> room);
    }

    @Override
    public void answer(HttpReplies out) {
        if (room.hasRemaining()) {
            out.problem(wrongLength(namespace, room.position()));
            return;
        }
        switch (writer.seal()) {
            case SEALED -> {
                counting.stored();
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
            counting.close();
        }
    }

    /// What answers a PUT that has nothing to write.
    static Exchange without(PutOutcome outcome) {
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
                                "the block before is not here; it is put first, and named by " + BlockArea.PARENT)
                        .exchange();
            case NO_ROOM ->
                new Problem(HttpResponseStatus.INSUFFICIENT_STORAGE, "all that could be evicted is in use; try again")
                        .exchange();
        };
    }

    /// What answers a PUT for which the tenant's quota has no room.
    static Exchange overQuota(Namespace namespace) {
        return Problem.named(
                        HttpResponseStatus.INSUFFICIENT_STORAGE,
                        "quota",
                        "the quota of tenant " + namespace.tenant() + " is used up, and what counts for it is being"
                                + " written, or is what this block is put below")
                .exchange();
    }

    /// A body that is not one block.
    static Problem wrongLength(Namespace namespace, long bytes) {
        BlockShape shape = NamespaceText.shapeOf(namespace);
        String whole = "a block of " + namespace.model() + " takes " + shape.bytes() + " bytes (" + shape.describe()
                + "), not " + bytes;
        return bytes < shape.bytes()
                ? Problem.named(
                        HttpResponseStatus.BAD_REQUEST, "partial-block", whole + "; a partial block is never kept")
                : Problem.named(HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "more-than-a-block", whole);
    }
}
