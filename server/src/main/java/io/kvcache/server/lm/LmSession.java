package io.kvcache.server.lm;

import io.kvcache.server.forward.RequestBytes.PassedValue;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.keyspace.ChunkSequenceTracker;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyPage;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmProtocol.LmForwarding;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ProtocolSession;
import io.kvcache.server.net.SessionHandler;
import io.kvcache.server.net.SlotIo;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// One client of `lm://`.
///
/// **What a PUT may not do.** It has no reply: any byte in answer would be taken for the next
/// reply's header. So a value without room is drained in silence and counted, and an older one goes
/// with it, as the client will believe that its own is here. The client may only learn of a failure
/// by a closed connection.
///
/// **What is not looked at.** The numbers that describe a tensor come back as they came, and HEALTH has no valid
/// key.
///
/// **Threads.** The connection's loop.
final class LmSession implements ProtocolSession, ProtocolSession.DirectReads {

    /// Less is copied sooner than read by a call of its own.
    private static final int MIN_DIRECT_READ = 8 << 10;

    private static final byte[] NOTHING = {};

    /// Keys listed before other clients of the same loop have their turn: about a millisecond.
    static final int LIST_PAGE_KEYS = 4096;

    /// Bytes of all keys in one LIST, as the reply is made in memory. A longer one is answered FAIL.
    private static final int MAX_LIST_BYTES = 32 << 20;

    private final Channel channel;
    private final ChannelHandlerContext context;
    private final Connection connection;
    private final KeyspaceRouter keyspaceRouter;
    private final LmStats stats;
    private final SessionHandler handler;
    private final LmEncoder replies;
    private final ByteBuf header;
    private final @Nullable LmForwarding forwarding;
    private boolean layoutChecked;
    private @Nullable LmRequest putRequest;
    private @Nullable PendingPut put;
    private @Nullable PassedPut passedPut;
    private long bodyLeft;
    private @Nullable ChunkSequenceTracker sequenceTracker;
    private boolean ended;

    /// A PUT that is passed on to another server.
    ///
    /// @param header as it came
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record PassedPut(byte[] header, PassedValue value) {}

    /// @param forwarding null for a server in no cluster
    LmSession(
            ChannelHandlerContext context,
            Connection connection,
            KeyspaceRouter keyspaceRouter,
            LmStats stats,
            SessionHandler handler,
            @Nullable LmForwarding forwarding) {
        this.context = context;
        channel = context.channel();
        this.connection = connection;
        this.keyspaceRouter = keyspaceRouter;
        this.stats = stats;
        this.handler = handler;
        this.forwarding = forwarding;
        replies = new LmEncoder(context);
        header = context.alloc().heapBuffer(LmCodec.REQUEST_BYTES, LmCodec.REQUEST_BYTES);
    }

    @Override
    public boolean onInput(Object input) {
        ByteBuf in = (ByteBuf) input;
        while (in.isReadable() && !ended && !handler.isSuspended() && channel.isWritable()) {
            if (putRequest != null) {
                readBody(putRequest, in);
            } else {
                readHeader(in);
            }
        }
        return ended || !in.isReadable();
    }

    private void readHeader(ByteBuf in) {
        connection.beginRequest();
        int wanted = layoutChecked ? LmCodec.REQUEST_BYTES : LmCodec.CHECKED_BYTES;
        header.writeBytes(in, Math.min(in.readableBytes(), wanted - header.readableBytes()));
        if (header.readableBytes() < wanted) {
            return;
        }
        if (!layoutChecked) {
            layoutChecked = true;
            if (LmCodec.isOlder(header)) {
                fail(); // its client would wait for the reply to a request that never ends
            }
            return;
        }
        byte[] bytes = forwarding == null ? NOTHING : ByteBufUtil.getBytes(header);
        LmRequest request = LmCodec.readRequest(header);
        header.clear();
        stats.requests.increment();
        connection.labelRequest(request.label());
        if (forwarding == null || !isValid(request) || !forwarding.isElsewhere(request)) {
            execute(request);
        } else if (request.command() == LmRequest.PUT) {
            beginPassedPut(request, bytes);
        } else {
            forward(forwarding, request, bytes);
        }
    }

    private void forward(LmForwarding to, LmRequest request, byte[] bytes) {
        handler.await(then -> to.forward(request, bytes, null, then), reply -> writeReply(reply), Reply::close);
    }

    private void writeReply(Reply reply) {
        if (reply.error().isEmpty()) {
            replies.writeReply(reply);
        } else {
            reply.close();
            replies.writeCode(LmEncoder.FAIL);
        }
    }

    private void beginPassedPut(LmRequest request, byte[] bytes) {
        if (request.length() < 0) {
            fail();
            return;
        }
        putRequest = request;
        bodyLeft = request.length();
        KeyspaceLimits limits = keyspaceOf(request).keyspaceLimits();
        PassedValue value =
                request.length() > limits.valueBytes() ? null : PassedValue.begin(limits.incoming(), request.length());
        if (value == null) {
            stats.droppedSilently.increment();
        } else {
            passedPut = new PassedPut(bytes, value);
        }
        if (bodyLeft == 0) {
            endPut(request);
        }
    }

    /// The next request waits: it may ask for this value.
    private void endPassedPut(LmRequest request, PassedPut passed) {
        LmForwarding to = Objects.requireNonNull(forwarding);
        passedPut = null;
        putRequest = null;
        handler.await(
                then -> to.forward(request, passed.header, passed.value.bytes(), reply -> {
                    passed.value.release();
                    then.accept(reply);
                }),
                reply -> {
                    if (!reply.error().isEmpty()) {
                        stats.droppedSilently.increment();
                    }
                    reply.close();
                },
                Reply::close);
    }

    private void execute(LmRequest request) {
        switch (request.command()) {
            case LmRequest.PUT -> beginPut(request);
            case LmRequest.GET -> get(request);
            case LmRequest.EXIST -> {
                boolean here =
                        isValid(request) && sequenceTracker(keyspaceOf(request)).exists(request.key());
                replies.writeCode(here ? LmEncoder.SUCCESS : LmEncoder.FAIL);
                onResponded();
            }
            case LmRequest.LIST -> {
                list(new ByteArrayOutputStream(), 0);
                onResponded();
            }
            case LmRequest.HEALTH -> {
                replies.writeCode(LmEncoder.SUCCESS);
                onResponded();
            }
            default -> fail();
        }
    }

    private void get(LmRequest request) {
        Keyspace keyspace = keyspaceOf(request);
        ReadResult readResult = isValid(request) ? keyspace.read(request.key()) : ReadResult.MISS;
        sequenceTracker(keyspace).onRead(request.key(), readResult.outcome() != ReadResult.Outcome.MISS);
        if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
            handler.await(
                    then -> keyspace.fetch(request.key(), channel.eventLoop(), then),
                    come -> writeValue(come.value()),
                    ReadResult::close);
        } else {
            writeValue(readResult.value());
            onResponded();
        }
    }

    private void writeValue(@Nullable PinnedValue value) {
        if (value == null) {
            replies.writeCode(LmEncoder.FAIL);
        } else {
            replies.writeValue(value);
        }
    }

    private Keyspace keyspaceOf(LmRequest request) {
        return keyspaceRouter.of(request.key());
    }

    private static boolean isValid(LmRequest request) {
        return request.key().length > 0;
    }

    private void beginPut(LmRequest request) {
        if (request.length() < 0) {
            fail();
            return;
        }
        putRequest = request;
        bodyLeft = request.length();
        Keyspace keyspace = keyspaceOf(request);
        if (!isValid(request)
                || request.key().length > keyspace.keyspaceLimits().keyBytes()) {
            stats.droppedSilently.increment();
        } else if (request.length() > keyspace.keyspaceLimits().valueBytes()) {
            recordDropped(request);
        } else if (keyspace.hasSameValue(request.key(), request.length(), request.note())) {
            sequenceTracker(keyspace).onWrite(request.key());
        } else {
            put = keyspace.put(
                    request.key(), request.length(), sequenceTracker(keyspace).onWrite(request.key()));
        }
        if (bodyLeft == 0) {
            endPut(request);
        }
    }

    private void readBody(LmRequest request, ByteBuf in) {
        int part = (int) Math.min(in.readableBytes(), bodyLeft);
        PendingPut target = put;
        if (passedPut != null) {
            passedPut.value.bytes().writeBytes(in, part);
        } else if (target != null && target.state() == PendingPut.State.WRITING) {
            SlotIo.read(in, part, target::writableBuffer);
        } else {
            in.skipBytes(part);
        }
        bodyLeft -= part;
        if (bodyLeft == 0) {
            endPut(request);
        }
    }

    @Override
    public @Nullable ByteBuffer writableBuffer() {
        PendingPut target = put;
        boolean lands = target != null && target.state() == PendingPut.State.WRITING && bodyLeft >= MIN_DIRECT_READ;
        return lands && target != null ? target.writableBuffer() : null;
    }

    @Override
    public void bytesWritten(int bytes) {
        PendingPut target = put;
        LmRequest request = putRequest;
        if (target != null && request != null) {
            target.bytesWritten(bytes);
            bodyLeft -= bytes;
            if (bodyLeft == 0) {
                endPut(request);
            }
        }
    }

    private void endPut(LmRequest request) {
        PassedPut passed = passedPut;
        if (passed != null) {
            endPassedPut(request, passed);
            return;
        }
        PendingPut target = put;
        putRequest = null;
        put = null;
        if (target == null) {
            onResponded();
            return;
        }
        switch (target.state()) {
            case WRITING -> {
                target.commit(0, request.note(), Condition.ALWAYS);
                onResponded();
            }
            case REJECTED -> {
                recordDropped(request);
                onResponded();
            }
            case DECLINED -> onResponded();
        }
    }

    private void recordDropped(LmRequest request) {
        stats.droppedSilently.increment();
        keyspaceOf(request).delete(request.key());
    }

    /// Answers all keys of the tenant's own, one a line, once they are collected page by page.
    private void list(ByteArrayOutputStream lines, long cursor) {
        KeyPage page = keyspaceRouter.ownKeyspace().scan(cursor, LIST_PAGE_KEYS);
        for (byte[] key : page.keys()) {
            if (lines.size() + key.length >= MAX_LIST_BYTES) {
                replies.writeCode(LmEncoder.FAIL);
                return;
            }
            if (lines.size() > 0) {
                lines.write('\n');
            }
            lines.writeBytes(key);
        }
        if (page.next() == 0) {
            replies.writeText(lines.toByteArray());
        } else {
            handler.yieldLoop(() -> list(lines, page.next()), () -> {});
        }
    }

    /// A request is answered, unless it waits for something.
    @Override
    public void onResponded() {
        if (!handler.isSuspended() && connection.endRequest() && !ended) {
            end(CloseReason.DRAIN);
        }
    }

    private ChunkSequenceTracker sequenceTracker(Keyspace keyspace) {
        ChunkSequenceTracker tracker = keyspace.sequenceTracker(sequenceTracker);
        sequenceTracker = tracker;
        return tracker;
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
    public boolean isEnded() {
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
        PassedPut passed = passedPut;
        if (passed != null) {
            passedPut = null;
            passed.value.release();
        }
    }

    /// Writes replies. A header is one buffer, and leaves with its body in one gathering write: several clients
    /// read it by a single `recv`.
    private static final class LmEncoder {

        static final int SUCCESS = 200;
        static final int FAIL = 400;

        private final ChannelHandlerContext context;

        LmEncoder(ChannelHandlerContext context) {
            this.context = context;
        }

        /// A reply without data.
        void writeCode(int code) {
            context.write(header(code, 0, TensorMetadata.NONE), context.voidPromise());
        }

        /// A reply with a body of its own.
        void writeText(byte[] body) {
            ByteBuf out = header(SUCCESS, body.length, TensorMetadata.NONE).writeBytes(body);
            context.write(out, context.voidPromise());
        }

        /// A value, from its slots. Takes the value over.
        void writeValue(PinnedValue value) {
            int bytes = Math.toIntExact(value.bytes());
            context.write(header(SUCCESS, bytes, value.tensorMetadata()), context.voidPromise());
            SlotIo.write(context, bytes, each -> value.visit(0, bytes, each), value::close);
        }

        /// A reply of another server as it came. Takes it over.
        void writeReply(Reply reply) {
            SlotIo.write(
                    context,
                    reply.byteCount(),
                    each -> reply.pieces().forEach(piece -> each.visitSegment(piece, 0, piece.byteSize())),
                    reply::close);
        }

        private ByteBuf header(int code, int length, TensorMetadata note) {
            ByteBuf out = context.alloc().directBuffer(LmCodec.REPLY_BYTES);
            LmCodec.writeReply(code, length, note, out);
            return out;
        }
    }

    /// A request's header.
    ///
    /// @param command 1 to 5, or wrong
    /// @param length of the body that follows a PUT
    /// @param key without padding; may be empty
    @SuppressWarnings("ArrayRecordComponent") // read once and thrown away, never compared
    record LmRequest(int command, int length, TensorMetadata note, byte[] key) {

        static final int PUT = 1;
        static final int GET = 2;
        static final int EXIST = 3;
        static final int LIST = 4;
        static final int HEALTH = 5;

        /// Returns the label under which the request is counted.
        String label() {
            return switch (command) {
                case PUT -> "put";
                case GET -> "get";
                case EXIST -> "exist";
                case LIST -> "list";
                case HEALTH -> "health";
                default -> "unknown";
            };
        }
    }

    /// The counters of all lm connections together.
    static final class LmStats {

        final LongAdder requests = new LongAdder();
        final LongAdder protocolErrors = new LongAdder();
        final LongAdder droppedSilently = new LongAdder();
    }
}
