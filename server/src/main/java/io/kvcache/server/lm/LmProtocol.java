package io.kvcache.server.lm;

import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmSession.LmRequest;
import io.kvcache.server.lm.LmSession.LmStats;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler;
import io.kvcache.transport.cluster.HashSlots;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelPipeline;
import java.util.function.Consumer;
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

    /// Values for which there was no room. A PUT has no reply, so the client does not learn it.
    public long droppedSilentlyCount() {
        return stats.droppedSilently.sum();
    }

    /// Passes requests about keys of other servers of the cluster on to those.
    ///
    /// **Threads.** Any.
    ///
    /// @param tenant whose clients say the requests
    record LmForwarding(RequestForwarder forwarder, String tenant) {

        /// Returns whether another server has to run a request.
        boolean isElsewhere(LmRequest request) {
            return request.command() <= LmRequest.EXIST && forwarder.isElsewhere(HashSlots.of(request.key()));
        }

        /// Passes a request on.
        ///
        /// @param header the request as it came
        /// @param value of a PUT, retained; null for others
        /// @param reply takes the reply, on another thread; that of a PUT only says whether it ran
        void forward(LmRequest request, byte[] header, @Nullable ByteBuf value, Consumer<Reply> reply) {
            RequestBytes bytes = new RequestBytes().add(header);
            if (value != null) {
                bytes.add(value).add(health()); // as a PUT has no reply
            }
            int slot = HashSlots.of(request.key());
            forwarder.forward(new Request(tenant, Dialect.LM, slot, Kind.CONTENT, bytes.segments()), come -> {
                bytes.release();
                reply.accept(come);
            });
        }

        /// Returns a PUT of a value with its metadata, and a request for a reply.
        static RequestBytes put(byte[] key, PinnedValue value) {
            LmRequest put = new LmRequest(LmRequest.PUT, Math.toIntExact(value.bytes()), value.tensorMetadata(), key);
            return new RequestBytes().add(LmCodec.header(put)).add(value).add(health());
        }

        private static byte[] health() {
            return LmCodec.header(new LmRequest(LmRequest.HEALTH, 0, TensorMetadata.NONE, new byte[0]));
        }
    }
}
