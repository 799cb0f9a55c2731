package io.kvcache.server.lm;

import io.kvcache.server.forward.ReplyFramer;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.lm.LmSession.LmStats;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler;
import io.netty.channel.ChannelPipeline;
import org.jspecify.annotations.Nullable;

/// The `lm://` front end.
public final class LmProtocol implements Protocol {

    private final KeyspaceRouter keyspaceRouter;
    private final @Nullable LmForwarding forwarding;
    private final String tenant;
    private final LmStats stats = new LmStats();

    /// @param keyspaceRouter the values that requests are for
    public LmProtocol(KeyspaceRouter keyspaceRouter) {
        this(keyspaceRouter, null, "");
    }

    /// @param keyspaceRouter the values that requests are for
    /// @param forwarder passes requests about keys of other servers on, or null
    /// @param tenant whose clients they are
    public LmProtocol(KeyspaceRouter keyspaceRouter, @Nullable RequestForwarder forwarder, String tenant) {
        this.keyspaceRouter = keyspaceRouter;
        this.tenant = tenant;
        forwarding = forwarder == null ? null : new LmForwarding(forwarder, tenant);
    }

    /// Finds the end of a reply.
    public static ReplyFramer replyFramer() {
        return new LmForwarding.LmReplyFramer();
    }

    /// Returns what has another server store a value with its metadata, and reply.
    ///
    /// @param value held until the bytes are released
    public static RequestBytes put(byte[] key, PinnedValue value) {
        return LmForwarding.put(key, value);
    }

    @Override
    public ProtocolKind kind() {
        return ProtocolKind.LM;
    }

    @Override
    public void install(ChannelPipeline pipeline, Connection connection) {
        connection.tenant(tenant);
        pipeline.addLast(new SessionHandler(
                connection,
                (context, handler) -> new LmSession(context, connection, keyspaceRouter, stats, handler, forwarding)));
    }

    /// Requests so far.
    public long requestCount() {
        return stats.requests.sum();
    }

    /// Connections that were closed because they did not speak the protocol.
    public long protocolErrorCount() {
        return stats.protocolErrors.sum();
    }

    /// Values that were not stored again, as an equal one is here.
    public long alreadyStoredCount() {
        return stats.alreadyStored.sum();
    }

    /// Values for which there was no room. A PUT has no reply, so the client does not learn it.
    public long droppedSilentlyCount() {
        return stats.droppedSilently.sum();
    }
}
