package io.kvcache.server.resp;

import io.kvcache.server.resp.RespProtocol.RespStats;

import io.kvcache.server.resp.Transaction.TransactionCommands;

import io.kvcache.server.resp.RespDecoder.RespLimits;

import io.kvcache.server.resp.RespDecoder.RespException;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.ProtocolSession;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import java.nio.ByteBuffer;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// One client's requests, in order, one reply each; no more requests while replies pile up.
///
/// **Threads.** The connection's loop.
final class RespRequestLoop implements RespDecoder.RequestSink, ProtocolSession {

    /// What a browser sends that a page of another site has told to post commands here. Redis hangs up too.
    private static final Set<String> CROSS_PROTOCOL = Set.of("POST", "HOST:");

    /// Words of queued commands that are run before others of the same loop have their turn: some
    /// milliseconds at the most.
    private static final int WORDS_PER_TURN = 4096;

    private final Channel channel;
    private final Connection connection;
    private final RespStats stats;
    private final RespClientState session;
    private final RespEncoder respEncoder;
    private final RespDecoder decoder;
    private boolean ended;

    /// Whether a request has begun in the bytes that are being taken.
    private boolean requestPipelined;

    /// @param resumption called when the conversation can take more after it had to wait
    RespRequestLoop(
            ChannelHandlerContext context,
            Connection connection,
            CommandTables commandTables,
            RespStats stats,
            Runnable resumption) {
        channel = context.channel();
        decoder = new RespDecoder(RespLimits.defaults(), new RequestMemory(stats.argumentMemory), this);
        this.connection = connection;
        this.stats = stats;
        respEncoder = new RespEncoder(context);
        Transaction transaction = new Transaction(
                RespLimits.defaults(), RequestMemory.forQueued(stats.argumentMemory, stats.queuedMemory));
        session = new RespClientState(connection, commandTables, channel.eventLoop(), transaction, () -> {
            onResponded();
            resumption.run();
        });
        connection.onAbort(this::sendAbortReason);
    }

    /// The request that is coming will not be answered in any other way.
    private void sendAbortReason(String why) {
        if (!ended) {
            ended = true;
            stats.errors.increment();
            respEncoder.writeError("ERR " + why);
            respEncoder.flush();
        }
    }

    @Override
    public void onBytes(ByteBuf in) {
        requestPipelined = false;
        try {
            decoder.decode(in);
        } catch (RespException mistake) {
            stats.protocolErrors.increment();
            respEncoder.writeError("ERR Protocol error: " + mistake.getMessage());
            finish(CloseReason.PROTOCOL_ERROR);
        }
    }

    @Override
    public @Nullable ByteBuffer writableBuffer() {
        return decoder.writableBuffer();
    }

    @Override
    public void bytesWritten(int bytes) {
        decoder.bytesWritten(bytes);
    }

    @Override
    public void resumeReply() {
        while (canResume()) {
            Runnable next = session.takeContinuation();
            if (next != null) {
                next.run();
                onResponded();
            }
        }
    }

    @Override
    public boolean canResume() {
        return !ended && !session.isAwaiting() && session.hasContinuation() && channel.isWritable();
    }

    @Override
    public void onRequestStart() {
        if (requestPipelined) {
            connection.beginPipelinedRequest();
        } else {
            connection.beginRequest();
            requestPipelined = true;
        }
    }

    @Override
    public @Nullable ValueUpload beginValue(RespRequest soFar, int count, long bytes) {
        Transaction transaction = session.transaction();
        if (transaction.isOpen() && session.commands().isValue(soFar, count)) {
            return transaction.bufferValue(bytes);
        }
        return session.commands().beginValue(session, soFar, count, bytes);
    }

    @Override
    public void onRequest(RespRequest request) {
        try (request) {
            if (CROSS_PROTOCOL.contains(request.name())) {
                stats.protocolErrors.increment();
                finish(CloseReason.PROTOCOL_ERROR);
                return;
            }
            if (request.count() > 0) {
                stats.commands.increment();
                session.onCommand(request);
                run(request);
            }
        }
        onResponded();
    }

    private void run(RespRequest request) {
        Transaction transaction = session.transaction();
        if (transaction.isOpen() && TransactionCommands.isQueued(request.name())) {
            connection.labelRequest("queued");
            if (!transaction.enqueue(request, session.commands().validationError(request), respEncoder)) {
                stats.errors.increment();
            }
        } else {
            connection.labelRequest(session.commands().label(request));
            session.commands().run(session, request, respEncoder);
        }
    }

    /// Runs what EXEC has left, as far as nothing has to be waited for.
    private void runQueued() {
        int words = 0;
        while (session.transaction().hasNext() && !session.isSuspended() && !ended) {
            if (!channel.isWritable()) {
                session.awaitWritable(() -> {});
            } else if (words >= WORDS_PER_TURN) {
                session.yieldLoop();
            } else {
                words += session.transaction().runNext(session, respEncoder);
            }
        }
    }

    private void onResponded() {
        runQueued();
        if (session.isSuspended() || ended) {
            return;
        }
        decoder.releaseMemory();
        boolean draining = connection.endRequest();
        CloseReason ending = session.closeReason();
        if (ending != null || draining) {
            finish(ending == null ? CloseReason.DRAIN : ending);
        }
    }

    private void finish(CloseReason reason) {
        ended = true;
        respEncoder.flush();
        connection.closeAfterReplies(reason);
    }

    @Override
    public boolean isPaused() {
        return ended || session.isSuspended() || !channel.isWritable();
    }

    @Override
    public boolean isEnded() {
        return ended;
    }

    @Override
    public void flush() {
        respEncoder.flush();
    }

    @Override
    public void close() {
        ended = true;
        session.close();
        decoder.close();
        respEncoder.discard();
    }
}
