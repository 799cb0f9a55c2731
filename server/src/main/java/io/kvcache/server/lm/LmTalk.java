package io.kvcache.server.lm;

import io.kvcache.server.keyspace.ChunkSequenceTrackers;
import io.kvcache.server.keyspace.KeyPage;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.SlotBytes;
import io.kvcache.server.net.Talk;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// One client of `lm://`.
///
/// **What a PUT may not do.** It has no reply: any byte in answer would be taken for the next
/// reply's header. So a value without room is drained in silence and counted, and an older one goes
/// with it, as the client will believe that its own is here. The client may only learn of a failure
/// by a closed connection.
///
/// **What is not looked at.** The numbers that describe a tensor come back as they came, and HEALTH has no valid key.
///
/// **Threads.** The connection's loop.
final class LmTalk implements Talk {

    /// Less is copied sooner than read by a call of its own.
    private static final int LEAST_LANDING = 8 << 10;

    /// Keys listed before other clients of the same loop have their turn: about a millisecond.
    static final int LISTED_AT_ONCE = 4096;

    /// Bytes of all keys in one LIST, as the reply is made in memory. A longer one is answered FAIL.
    private static final int MAX_LIST_BYTES = 32 << 20;

    private final Channel channel;
    private final ChannelHandlerContext context;
    private final Connection connection;
    private final KeyspaceRouter reach;
    private final ChunkSequenceTrackers runs = new ChunkSequenceTrackers();
    private final LmStats stats;
    private final Runnable goOn;
    private final LmReplies replies;
    private final ByteBuf header;
    private @Nullable LmLayout layout;
    private @Nullable LmRequest putting;
    private @Nullable PendingPut put;
    private long bodyLeft;
    private boolean awaiting;
    private boolean ended;

    /// @param pinned the layout, when it need not be told by the first bytes
    LmTalk(
            ChannelHandlerContext context,
            Connection connection,
            KeyspaceRouter reach,
            LmStats stats,
            Runnable goOn,
            @Nullable LmLayout pinned) {
        this.context = context;
        channel = context.channel();
        this.connection = connection;
        this.reach = reach;
        this.stats = stats;
        this.goOn = goOn;
        layout = pinned;
        replies = new LmReplies(context);
        header = context.alloc().heapBuffer(LmLayout.V1B.requestBytes(), LmLayout.V1B.requestBytes());
    }

    @Override
    public void take(ByteBuf in) {
        while (in.isReadable() && !paused()) {
            if (putting != null) {
                body(putting, in);
            } else {
                header(in);
            }
        }
    }

    private void header(ByteBuf in) {
        connection.requestBegins();
        int wanted = layout == null ? LmLayout.TELLING_BYTES : layout.requestBytes();
        header.writeBytes(in, Math.min(in.readableBytes(), wanted - header.readableBytes()));
        if (header.readableBytes() < wanted) {
            return;
        }
        if (layout == null) {
            layout = LmLayout.tell(header);
            return;
        }
        LmRequest request = layout.read(header);
        header.clear();
        stats.requests.increment();
        connection.requestIs(request.verb());
        answer(layout, request);
    }

    private void answer(LmLayout spoken, LmRequest request) {
        switch (request.command()) {
            case LmRequest.PUT -> beginPut(request);
            case LmRequest.GET -> get(spoken, request);
            case LmRequest.EXIST -> {
                boolean here =
                        possible(request) && runs.forKeyspace(of(request)).exists(request.key());
                replies.code(spoken, here ? LmReplies.SUCCESS : LmReplies.FAIL);
                answered();
            }
            case LmRequest.LIST -> list(spoken, new ByteArrayOutputStream(), 0);
            case LmRequest.HEALTH -> {
                replies.code(spoken, LmReplies.SUCCESS);
                answered();
            }
            default -> fail();
        }
    }

    private void get(LmLayout spoken, LmRequest request) {
        Keyspace keyspace = of(request);
        ReadResult reading = possible(request) ? keyspace.read(request.key()) : ReadResult.MISS;
        runs.forKeyspace(keyspace).onRead(request.key(), reading.outcome() != ReadResult.Outcome.MISS);
        if (reading.outcome() == ReadResult.Outcome.ON_DISK) {
            await();
            keyspace.fetch(request.key(), channel.eventLoop(), come -> arrived(spoken, come.value()));
        } else {
            reply(spoken, reading.value());
            answered();
        }
    }

    /// A value has come from disk, or has not come in time.
    private void arrived(LmLayout spoken, @Nullable PinnedValue value) {
        if (!ended) {
            reply(spoken, value);
            resume();
        } else if (value != null) {
            value.close();
        }
    }

    private void reply(LmLayout spoken, @Nullable PinnedValue value) {
        if (value == null) {
            replies.code(spoken, LmReplies.FAIL);
        } else {
            replies.value(spoken, value);
        }
    }

    private Keyspace of(LmRequest request) {
        return reach.of(request.key());
    }

    private static boolean possible(LmRequest request) {
        return request.key().length > 0;
    }

    private void beginPut(LmRequest request) {
        if (request.length() < 0) {
            fail();
            return;
        }
        putting = request;
        bodyLeft = request.length();
        Keyspace keyspace = of(request);
        if (!possible(request)
                || request.key().length > keyspace.keyspaceLimits().keyBytes()) {
            stats.droppedSilently.increment();
        } else if (request.length() > keyspace.keyspaceLimits().valueBytes()) {
            drop(request);
        } else if (keyspace.hasSameValue(request.key(), request.length(), request.note())) {
            stats.heldAlready.increment();
            runs.forKeyspace(keyspace).onWrite(request.key());
        } else {
            put = keyspace.put(
                    request.key(), request.length(), runs.forKeyspace(keyspace).onWrite(request.key()));
        }
        if (bodyLeft == 0) {
            endPut(request);
        }
    }

    private void body(LmRequest request, ByteBuf in) {
        int part = (int) Math.min(in.readableBytes(), bodyLeft);
        PendingPut target = put;
        if (target != null && target.state() == PendingPut.State.WRITING) {
            SlotBytes.read(in, part, target::writableBuffer);
        } else {
            in.skipBytes(part);
        }
        bodyLeft -= part;
        if (bodyLeft == 0) {
            endPut(request);
        }
    }

    @Override
    public @Nullable ByteBuffer landing() {
        PendingPut target = put;
        boolean lands = target != null && target.state() == PendingPut.State.WRITING && bodyLeft >= LEAST_LANDING;
        return lands && target != null ? target.writableBuffer() : null;
    }

    @Override
    public void landed(int bytes) {
        PendingPut target = put;
        LmRequest request = putting;
        if (target != null && request != null) {
            target.bytesWritten(bytes);
            bodyLeft -= bytes;
            if (bodyLeft == 0) {
                endPut(request);
            }
        }
    }

    private void endPut(LmRequest request) {
        PendingPut target = put;
        putting = null;
        put = null;
        if (target == null) {
            answered();
            return;
        }
        switch (target.state()) {
            case WRITING -> {
                target.commit(0, request.note(), Condition.ALWAYS);
                answered();
            }
            case REJECTED -> {
                drop(request);
                answered();
            }
        }
    }

    private void drop(LmRequest request) {
        stats.droppedSilently.increment();
        of(request).delete(request.key());
    }

    private void await() {
        awaiting = true;
        connection.waiting(true);
    }

    private void resume() {
        awaiting = false;
        connection.waiting(false);
        answered();
        goOn.run();
    }

    /// Answers all keys of the tenant's own, one a line, once they are collected page by page.
    private void list(LmLayout spoken, ByteArrayOutputStream lines, long cursor) {
        if (ended) {
            return;
        }
        KeyPage page = reach.ownKeyspace().scan(cursor, LISTED_AT_ONCE);
        for (byte[] key : page.keys()) {
            if (lines.size() + key.length >= MAX_LIST_BYTES) {
                replies.code(spoken, LmReplies.FAIL);
                listed();
                return;
            }
            if (lines.size() > 0) {
                lines.write('\n');
            }
            lines.writeBytes(key);
        }
        if (page.next() == 0) {
            replies.text(spoken, lines.toByteArray());
            listed();
        } else {
            if (!awaiting) {
                await();
            }
            channel.eventLoop().execute(() -> list(spoken, lines, page.next()));
        }
    }

    private void listed() {
        if (awaiting) {
            resume();
        } else {
            answered();
        }
    }

    private void answered() {
        if (connection.requestEnds() && !ended) {
            end(CloseReason.DRAIN);
        }
    }

    private void fail() {
        stats.protocolErrors.increment();
        end(CloseReason.PROTOCOL_ERROR);
    }

    private void end(CloseReason reason) {
        ended = true;
        connection.closeAfterReplies(reason);
    }

    @Override
    public void proceed() {
        // No reply is written in parts.
    }

    @Override
    public boolean canGoOn() {
        return false;
    }

    @Override
    public boolean paused() {
        return ended || awaiting || !channel.isWritable();
    }

    @Override
    public boolean ended() {
        return ended;
    }

    @Override
    public void flush() {
        context.flush();
    }

    @Override
    public void close() {
        ended = true;
        if (header.refCnt() > 0) {
            header.release();
        }
        if (put != null) {
            put.close();
            put = null;
        }
    }
}
