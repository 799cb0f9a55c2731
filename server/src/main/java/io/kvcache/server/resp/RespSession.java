package io.kvcache.server.resp;

import io.kvcache.server.keyspace.ChunkSequenceTracker;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.ClientInfo;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ProtocolSession;
import io.kvcache.server.net.SessionHandler;
import io.kvcache.server.quota.PartRead;
import io.kvcache.server.resp.RespDecoder.RespException;
import io.kvcache.server.resp.RespProtocol.RespStats;
import io.kvcache.server.resp.RespRequest.RequestMemory;
import io.kvcache.server.resp.Transaction.TransactionCommands;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// One client's requests, in order, one reply each; no more requests while replies pile up. Between two requests
/// it keeps the connection's state: tenant, name, transaction.
///
/// **Threads.** The connection's loop.
final class RespSession implements RespDecoder.RequestSink, ProtocolSession, ProtocolSession.DirectReads {

    /// Sent by a browser when a page of another site makes it post commands here. Redis hangs up too.
    private static final Set<String> CROSS_PROTOCOL = Set.of("POST", "HOST:");

    /// The only commands that LMCache's native client sends.
    private static final Set<String> NATIVE_CLIENT_COMMANDS = Set.of("AUTH", "GET", "SET", "EXISTS", "DEL");

    /// Words of queued commands that are run before others of the same loop have their turn: some
    /// milliseconds at the most.
    private static final int WORDS_PER_TURN = 4096;

    private final Channel channel;
    private final Connection connection;
    private final SessionHandler handler;
    private final RespAuthenticator authenticator;
    private final RespStats stats;
    private final RespEncoder respEncoder;
    private final RespDecoder decoder;
    private CommandTable commands;
    private @Nullable Transaction transaction;
    private @Nullable ChunkSequenceTracker sequenceTracker;
    private @Nullable CloseReason closeReason;
    private boolean nativeCommandsOnly = true;
    private boolean ended;

    /// Whether a request has begun in the bytes that are being taken.
    private boolean requestPipelined;

    RespSession(
            ChannelHandlerContext context,
            Connection connection,
            SessionHandler handler,
            RespAuthenticator authenticator,
            RespStats stats) {
        channel = context.channel();
        this.connection = connection;
        this.handler = handler;
        this.authenticator = authenticator;
        this.stats = stats;
        decoder = new RespDecoder(new RequestMemory(stats.argumentMemory), this);
        respEncoder = new RespEncoder(context);
        commands = authenticator.initialTable();
        enterTenant(commands);
        connection.onAbort(this::sendAbortReason);
    }

    /// The request that is coming will not be answered in any other way.
    private void sendAbortReason(String why) {
        if (!ended) {
            ended = true;
            stats.errors.increment();
            respEncoder.writeError("ERR " + why);
            finishUnread(CloseReason.STALLED_REQUEST);
        } else {
            connection.closeAfterReplies(CloseReason.STALLED_REQUEST);
        }
    }

    @Override
    public boolean onInput(Object input) {
        ByteBuf in = (ByteBuf) input;
        requestPipelined = false;
        try {
            decoder.decode(in);
        } catch (RespException mistake) {
            stats.protocolErrors.increment();
            respEncoder.writeError("ERR Protocol error: " + mistake.getMessage());
            finishUnread(CloseReason.PROTOCOL_ERROR);
        }
        return ended || !in.isReadable();
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
    public void onRequestStart() {
        if (requestPipelined) {
            connection.beginPipelinedRequest();
        } else {
            connection.beginRequest();
            requestPipelined = true;
        }
    }

    @Override
    public int lookAhead(ByteBuf in) {
        return isQueueing() ? 0 : commands.lookAhead(in);
    }

    @Override
    public @Nullable ValueUpload beginValue(RespRequest soFar, int count, long bytes) {
        if (isQueueing() && commands.isValue(soFar, count)) {
            return transaction().bufferValue(bytes);
        }
        return commands.beginValue(this, soFar, count, bytes);
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
                nativeCommandsOnly = nativeCommandsOnly && NATIVE_CLIENT_COMMANDS.contains(request.name());
                run(request);
            }
        }
        onResponded();
    }

    private void run(RespRequest request) {
        if (isQueueing() && TransactionCommands.isQueued(request.name())) {
            connection.labelRequest("queued");
            if (!transaction().enqueue(request, commands.validationError(request), respEncoder)) {
                stats.errors.increment();
            }
        } else {
            connection.labelRequest(commands.label(request));
            commands.run(this, request, respEncoder);
        }
    }

    /// Runs what EXEC has left, as far as nothing has to be waited for.
    private void runQueued(Transaction running) {
        int words = 0;
        while (running.hasNext() && !handler.isSuspended() && !ended) {
            if (!channel.isWritable()) {
                handler.awaitWritable(() -> {});
            } else if (words >= WORDS_PER_TURN) {
                yieldLoop(() -> {});
            } else {
                words += running.runNext(this, respEncoder);
            }
        }
    }

    /// A request is answered, unless it waits for something.
    @Override
    public void onResponded() {
        if (transaction != null) {
            runQueued(transaction);
        }
        if (handler.isSuspended() || ended) {
            return;
        }
        decoder.releaseMemory();
        boolean draining = connection.endRequest();
        CloseReason ending = closeReason;
        if (ending != null || draining) {
            finish(ending == null ? CloseReason.DRAIN : ending);
        }
    }

    /// Ends after an error, while the client may still be sending: it could not read the error if that was not read.
    private void finishUnread(CloseReason reason) {
        ended = true;
        respEncoder.flush();
        handler.linger();
        connection.closeAfterLingering(reason);
    }

    private void finish(CloseReason reason) {
        ended = true;
        respEncoder.flush();
        connection.closeAfterReplies(reason);
    }

    @Override
    public boolean isPaused() {
        return ended || handler.isSuspended() || !channel.isWritable();
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
        endTransaction();
        decoder.close();
        respEncoder.discard();
    }

    Connection connection() {
        return connection;
    }

    SessionHandler handler() {
        return handler;
    }

    /// The commands that it may run now.
    CommandTable commands() {
        return commands;
    }

    /// From now on it is a tenant.
    void enterTenant(CommandTable own) {
        commands = own;
        if (authenticator.isAuthenticated(this)) {
            connection.markAuthenticated();
        }
        setClientInfo(connection.clientInfo().withTenant(own.tenant()));
    }

    /// It is again the tenant that it was in the beginning.
    void resetTenant() {
        enterTenant(authenticator.initialTable());
    }

    /// The client says something of itself.
    void setClientInfo(ClientInfo told) {
        connection.clientInfo(told);
    }

    /// As set by the client; empty when it was not.
    String name() {
        return connection.clientInfo().name();
    }

    void name(String chosen) {
        setClientInfo(connection.clientInfo().withName(chosen));
    }

    /// Returns whether this may be LMCache's native client. It reads replies of a fixed length, so an error where
    /// it expects `+OK` would be taken for the next replies, and values for other keys' values.
    boolean isMaybeNativeClient() {
        return nativeCommandsOnly && !commands.isForRedisCluster();
    }

    /// The order in which this client asks for the keys of a keyspace.
    ChunkSequenceTracker sequenceTracker(Keyspace keyspace) {
        ChunkSequenceTracker tracker = keyspace.sequenceTracker(sequenceTracker);
        sequenceTracker = tracker;
        return tracker;
    }

    /// The commands between MULTI and EXEC; made at first use.
    Transaction transaction() {
        Transaction own = transaction;
        if (own == null) {
            own = new Transaction(RequestMemory.forQueued(stats.argumentMemory, stats.queuedMemory));
            transaction = own;
        }
        return own;
    }

    private boolean isQueueing() {
        return transaction != null && transaction.isOpen();
    }

    /// Forgets what was said since MULTI.
    void endTransaction() {
        if (transaction != null) {
            transaction.end();
        }
    }

    /// The connection ends once this request is answered.
    void closeAfterReply(CloseReason why) {
        closeReason = why;
    }

    /// Goes on with a command when the other connections of the loop have had their turn.
    void yieldLoop(Runnable next) {
        handler.yieldLoop(next, () -> {});
    }

    /// Goes on after a time.
    void awaitTime(long nanos, Runnable next) {
        handler.<Boolean>await(
                then -> {
                    var _ = channel.eventLoop().schedule(() -> then.accept(true), nanos, TimeUnit.NANOSECONDS);
                },
                _ -> next.run(),
                _ -> {});
    }

    /// Goes on when a part of a value has come from disk, or is known not to come in time.
    void awaitPart(PartRead part, Consumer<Boolean> next) {
        handler.<Boolean>await(then -> part.there().thenAccept(then), next, _ -> {});
    }

    /// Goes on when a value has come from disk, or is known not to come. If the connection has ended meanwhile, the
    /// value is given back.
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> next) {
        awaitValue(keyspace, key, next, () -> {});
    }

    /// The same for a command that holds something meanwhile.
    ///
    /// @param abandon run instead of `next` when the connection ends before
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> next, Runnable abandon) {
        handler.await(then -> keyspace.fetch(key, channel.eventLoop(), then), next, ReadResult::close, abandon);
    }
}
