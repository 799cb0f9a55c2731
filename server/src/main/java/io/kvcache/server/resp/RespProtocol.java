package io.kvcache.server.resp;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespRequest.RequestMemory;
import io.netty.channel.ChannelPipeline;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// The Redis front end.
public final class RespProtocol implements Protocol {

    private final RespAuthenticator authenticator;
    private final RespStats stats;

    /// @param tenants what each tenant's commands work on, by its name
    /// @param arguments heap for those of requests that are not answered yet, shared by all connections
    public RespProtocol(ListenerAuth listenerAuth, Map<String, RespContext> tenants, ByteBudget arguments) {
        stats = new RespStats(arguments);
        authenticator = new RespAuthenticator(listenerAuth, tenants, stats);
    }

    @Override
    public ProtocolKind kind() {
        return ProtocolKind.RESP;
    }

    @Override
    public void install(ChannelPipeline pipeline, Connection connection) {
        pipeline.addLast(new SessionHandler(
                connection, (context, handler) -> new RespSession(context, connection, handler, authenticator, stats)));
    }

    /// Heap that all connections of a server may take for arguments beyond 64 KiB each: an eighth of it.
    public static ByteBudget argumentsOfHeap() {
        return RequestMemory.heapBudget();
    }

    /// Commands run so far.
    public long commandCount() {
        return stats.commands.sum();
    }

    /// Error replies so far.
    public long errorCount() {
        return stats.errors.sum();
    }

    /// Values for which there was no room, and whose client cannot be told: it was answered `+OK`.
    public long droppedAfterOkCount() {
        return stats.droppedAfterOk.sum();
    }

    /// Counters of the front end over all its connections, and the memory that they share.
    static final class RespStats {

        final LongAdder commands = new LongAdder();
        final LongAdder errors = new LongAdder();
        final LongAdder protocolErrors = new LongAdder();
        final LongAdder droppedAfterOk = new LongAdder();

        /// When SAVE ended well the last time, in seconds since the epoch; 0 for never.
        final AtomicLong savedSeconds = new AtomicLong();

        /// Heap for the arguments of requests that are not answered yet.
        final ByteBudget argumentMemory;

        /// As much of it as may wait for EXEC.
        final ByteBudget queuedMemory;

        RespStats(ByteBudget arguments) {
            this.argumentMemory = arguments;
            queuedMemory = new ByteBudget(arguments.limitBytes() / 2);
        }
    }
}
