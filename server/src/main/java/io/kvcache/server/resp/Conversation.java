package io.kvcache.server.resp;

import io.kvcache.server.net.CloseReason;
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
final class Conversation implements RespDecoder.Sink, ProtocolSession {

    /// What a browser sends that a page of another site has told to post commands here. Redis hangs up too.
    private static final Set<String> CROSS_PROTOCOL = Set.of("POST", "HOST:");

    /// Words of queued commands that are run before others of the same loop have their turn: some
    /// milliseconds at the most.
    private static final int WORDS_AT_ONCE = 4096;

    private final Channel channel;
    private final Connection connection;
    private final RespStats stats;
    private final RespSession session;
    private final Replies replies;
    private final RespDecoder decoder;
    private boolean ended;

    /// Whether a request has begun in the bytes that are being taken.
    private boolean follows;

    /// @param goOn called when the conversation can take more after it had to wait
    Conversation(
            ChannelHandlerContext context, Connection connection, Entrance entrance, RespStats stats, Runnable goOn) {
        channel = context.channel();
        decoder = new RespDecoder(RespLimits.defaults(), new Arguments(stats.arguments), this);
        this.connection = connection;
        this.stats = stats;
        replies = new Replies(context);
        Transaction transaction =
                new Transaction(RespLimits.defaults(), Arguments.waiting(stats.arguments, stats.waiting));
        session = new RespSession(connection, entrance, channel.eventLoop(), transaction, () -> {
            answered();
            goOn.run();
        });
        connection.onAbort(this::cut);
    }

    /// The request that is coming will not be answered in any other way.
    private void cut(String why) {
        if (!ended) {
            ended = true;
            stats.errors.increment();
            replies.error("ERR " + why);
            replies.flush();
        }
    }

    @Override
    public void take(ByteBuf in) {
        follows = false;
        try {
            decoder.decode(in);
        } catch (RespException mistake) {
            stats.protocolErrors.increment();
            replies.error("ERR Protocol error: " + mistake.getMessage());
            finish(CloseReason.PROTOCOL_ERROR);
        }
    }

    @Override
    public @Nullable ByteBuffer landing() {
        return decoder.landing();
    }

    @Override
    public void landed(int bytes) {
        decoder.landed(bytes);
    }

    @Override
    public void proceed() {
        while (canGoOn()) {
            Runnable next = session.takeContinuation();
            if (next != null) {
                next.run();
                answered();
            }
        }
    }

    @Override
    public boolean canGoOn() {
        return !ended && !session.awaiting() && session.hasContinuation() && channel.isWritable();
    }

    @Override
    public void begins() {
        if (follows) {
            connection.beginPipelinedRequest();
        } else {
            connection.beginRequest();
            follows = true;
        }
    }

    @Override
    public @Nullable IncomingValue value(Request soFar, int count, long bytes) {
        Transaction transaction = session.transaction();
        if (transaction.isOpen() && session.commands().isValue(soFar, count)) {
            return transaction.value(bytes);
        }
        return session.commands().value(session, soFar, count, bytes);
    }

    @Override
    public void ends(Request request) {
        try (request) {
            if (CROSS_PROTOCOL.contains(request.name())) {
                stats.protocolErrors.increment();
                finish(CloseReason.PROTOCOL_ERROR);
                return;
            }
            if (request.count() > 0) {
                stats.commands.increment();
                session.heard(request);
                run(request);
            }
        }
        answered();
    }

    private void run(Request request) {
        Transaction transaction = session.transaction();
        if (transaction.isOpen() && TransactionCommands.isQueued(request.name())) {
            connection.labelRequest("queued");
            if (!transaction.add(request, session.commands().mistake(request), replies)) {
                stats.errors.increment();
            }
        } else {
            connection.labelRequest(session.commands().verb(request));
            session.commands().run(session, request, replies);
        }
    }

    /// Runs what EXEC has left, as far as nothing has to be waited for.
    private void runQueued() {
        int words = 0;
        while (session.transaction().hasNext() && !session.suspended() && !ended) {
            if (!channel.isWritable()) {
                session.whenWritable(() -> {});
            } else if (words >= WORDS_AT_ONCE) {
                session.awaitTurn();
            } else {
                words += session.transaction().next(session, replies);
            }
        }
    }

    private void answered() {
        runQueued();
        if (session.suspended() || ended) {
            return;
        }
        decoder.answered();
        boolean draining = connection.endRequest();
        CloseReason ending = session.ending();
        if (ending != null || draining) {
            finish(ending == null ? CloseReason.DRAIN : ending);
        }
    }

    private void finish(CloseReason reason) {
        ended = true;
        replies.flush();
        connection.closeAfterReplies(reason);
    }

    @Override
    public boolean paused() {
        return ended || session.suspended() || !channel.isWritable();
    }

    @Override
    public boolean ended() {
        return ended;
    }

    @Override
    public void flush() {
        replies.flush();
    }

    @Override
    public void close() {
        ended = true;
        session.close();
        decoder.close();
        replies.discard();
    }
}
