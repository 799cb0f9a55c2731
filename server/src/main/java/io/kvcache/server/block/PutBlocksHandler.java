package io.kvcache.server.block;

import io.kvcache.core.identity.EngineKey;
import io.kvcache.server.block.BlockPuts.PutStart;
import io.kvcache.server.block.ChainEndpoint.ChainRequest;
import io.kvcache.server.block.ChainEndpoint.NamedBlocks;
import io.kvcache.server.block.ChainEndpoint.RejectedChain;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.JsonBodyHandler;
import io.kvcache.server.http.ProblemDetails;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// Put of several blocks of a chain. The body is a line of JSON that names them, and then their bytes, one block
/// after the other.
///
/// Each block takes its room when its first byte comes and is stored with its last, so one slot is open at a time,
/// and a client that goes away leaves the blocks that were complete. The first block that cannot be stored ends it:
/// the rest of the body is skipped.
final class PutBlocksHandler implements HttpRequestHandler {

    private static final long MAX_BODY_BYTES = JsonBodyHandler.MAX_BODY_BYTES + ChainEndpoint.MAX_BYTES;

    /// @param blocks leading ones that are present, or will be once blocks before them have come from disk or another
    ///     client has written them
    /// @param stored of them, those whose bytes this request has given
    private record PutReply(int blocks, int stored) {}

    private final BlockPuts puts;
    private final long bodyBytes;
    private final Function<JsonNode, ChainRequest> reader;
    private final CompositeByteBuf line = Unpooled.compositeBuffer(1024);
    private @Nullable NamedBlocks named;
    private @Nullable ProblemDetails problem;

    /// The block whose bytes come next.
    private int next;

    /// Bytes of that block that have not come; 0 before it begins.
    private long remaining;

    /// Null while the bytes of a block that need not be written are skipped.
    private @Nullable PutBlockHandler writing;

    private int stored;
    private boolean pending;

    /// @param bodyBytes as the request's headers say
    /// @param reader reads the first line; an `IllegalArgumentException` of its own is answered as the client's
    ///     mistake
    PutBlocksHandler(BlockPuts puts, long bodyBytes, Function<JsonNode, ChainRequest> reader) {
        this.puts = puts;
        this.bodyBytes = bodyBytes;
        this.reader = reader;
    }

    @Override
    public boolean rejectsBody(long contentLength) {
        if (contentLength > MAX_BODY_BYTES) {
            problem = new ProblemDetails(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                    "a body of " + contentLength + " bytes; it takes a line of up to " + JsonBodyHandler.MAX_BODY_BYTES
                            + " bytes and blocks of up to " + ChainEndpoint.MAX_BYTES);
        }
        return problem != null;
    }

    @Override
    public void onBody(ByteBuf part) {
        while (part.isReadable() && problem == null) {
            NamedBlocks blocks = named;
            if (blocks == null) {
                takeLine(part);
            } else {
                takeBlock(blocks, part);
            }
        }
        part.skipBytes(part.readableBytes());
    }

    private void takeLine(ByteBuf part) {
        int end = part.indexOf(part.readerIndex(), part.writerIndex(), (byte) '\n');
        int length = end < 0 ? part.readableBytes() : end + 1 - part.readerIndex();
        if (line.readableBytes() + length > JsonBodyHandler.MAX_BODY_BYTES) {
            problem = mistake("the body's first line takes up to " + JsonBodyHandler.MAX_BODY_BYTES + " bytes");
            return;
        }
        line.addComponent(true, part.readRetainedSlice(length));
        if (end >= 0) {
            readLine();
            line.readerIndex(line.writerIndex()).discardReadComponents();
        }
    }

    private void readLine() {
        long blockBytes = bodyBytes - line.readableBytes();
        try {
            switch (reader.apply(JsonBodyHandler.parseObject("the body's first line", line))) {
                case RejectedChain rejected -> problem = rejected.problem();
                case NamedBlocks blocks -> {
                    blocks.requireFits();
                    long wanted = blocks.keys().size() * blocks.blockBytes();
                    if (wanted == blockBytes) {
                        named = blocks;
                    } else {
                        problem = mistake(blocks.keys().size() + " blocks of " + blocks.blockBytes() + " bytes take "
                                + wanted + " bytes behind the first line, not " + blockBytes);
                    }
                }
            }
        } catch (IllegalArgumentException mistake) {
            problem = mistake(String.valueOf(mistake.getMessage()));
        }
    }

    private static ProblemDetails mistake(String detail) {
        return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, detail);
    }

    private void takeBlock(NamedBlocks blocks, ByteBuf part) {
        if (remaining == 0) {
            begin(blocks);
            return;
        }
        int length = (int) Math.min(remaining, part.readableBytes());
        if (writing == null) {
            part.skipBytes(length);
        } else {
            writing.onBody(part.readSlice(length));
        }
        remaining -= length;
        if (remaining == 0) {
            seal();
        }
    }

    private void begin(NamedBlocks blocks) {
        EngineKey parent =
                next == 0 ? blocks.parent() : EngineKey.of(blocks.keys().get(next - 1));
        EngineKey key = EngineKey.of(blocks.keys().get(next));
        remaining = blocks.blockBytes();
        switch (puts.start(blocks.namespace(), key, parent)) {
            case PutStart.Ready ready -> writing = ready.block();
            case PutStart.Unneeded unneeded -> pending |= unneeded.status().equals(HttpResponseStatus.ACCEPTED);
            case PutStart.Rejected rejected -> problem = rejected.problem();
        }
    }

    private void seal() {
        PutBlockHandler block = writing;
        writing = null;
        if (block != null) {
            try (block) {
                switch (block.seal()) {
                    case SEALED -> stored++;
                    case PENDING -> {
                        stored++;
                        pending = true;
                    }
                    case DROPPED -> problem = PutBlockHandler.droppedProblem();
                }
            }
        }
        if (problem == null) {
            next++;
        }
    }

    @Override
    public void respond(HttpResponder out) {
        if (problem == null && (named == null || next < named.keys().size())) {
            problem = mistake(
                    named == null
                            ? "the body takes a line of JSON, which ends with a line feed, and blocks behind it"
                            : "the body is shorter than its Content-Length");
        }
        if (problem == null) {
            out.sendJson(pending ? HttpResponseStatus.ACCEPTED : HttpResponseStatus.OK, new PutReply(next, stored));
        } else {
            out.sendProblem(
                    named == null ? problem : problem.withMember("blocks", next).withMember("stored", stored));
        }
    }

    @Override
    public void close() {
        line.release();
        if (writing != null) {
            writing.close();
            writing = null;
        }
    }
}
