package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One object on its way here.
final class ObjectReceiver implements DataConnection.ReplyHandler {

    private final RemoteCacheContext remoteCacheContext;
    private final RemoteSession remoteSession;
    private final ObjectQuery objectQuery;
    private FoundObject foundObject;
    private boolean dataExpected;
    private boolean replied;
    private ReceiveBuffers.@Nullable PooledBuffer buffer;
    private @Nullable ObjectView view;

    /// What the server has found.
    ///
    /// @param lease 0 when it is not here
    /// @param sent whether its bytes follow
    /// @param places where it lies, if that was asked for and told
    record FoundObject(long lease, long bytes, boolean sent, LeasedObjectView.@Nullable ObjectExtents places) {

        static final FoundObject NOT_FOUND = new FoundObject(0, 0, false, null);

        static FoundObject read(BodyReader body) throws ProtocolException {
            long lease = body.i64("lease");
            return new FoundObject(
                    lease,
                    body.nonNegativeLong("bytes"),
                    body.u8("sent") != 0,
                    LeasedObjectView.ObjectExtents.read(body));
        }
    }

    /// What a caller wants.
    ///
    /// @param untilNanos when he waits no longer
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record ObjectQuery(byte[] key, long untilNanos) {}

    private ObjectReceiver(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            ObjectQuery objectQuery,
            FoundObject foundObject) {
        this.remoteCacheContext = remoteCacheContext;
        this.remoteSession = remoteSession;
        this.objectQuery = objectQuery;
        this.foundObject = foundObject;
    }

    /// Asks for a resident object, and waits until it is here.
    ///
    /// @param body of GET_OBJECT
    static @Nullable ObjectView get(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            ObjectQuery objectQuery,
            BodyWriter body)
            throws RpcException {
        ObjectReceiver arrival =
                new ObjectReceiver(remoteCacheContext, remoteSession, objectQuery, FoundObject.NOT_FOUND);
        return arrival.run(MessageType.GET_OBJECT, body);
    }

    /// Reads an object of a lease.
    static @Nullable ObjectView read(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            ObjectQuery objectQuery,
            FoundObject foundObject)
            throws RpcException {
        ObjectReceiver arrival = new ObjectReceiver(remoteCacheContext, remoteSession, objectQuery, foundObject);
        return arrival.run(
                MessageType.READ, new BodyWriter().i64(foundObject.lease).i32(0).i32(1));
    }

    private @Nullable ObjectView run(MessageType type, BodyWriter body) throws RpcException {
        try {
            remoteSession
                    .data()
                    .withConnection(objectQuery.untilNanos, (line, patience) -> line.call(type, body, patience, this));
            return view;
        } finally {
            if (view == null) {
                if (buffer != null) {
                    buffer.free();
                    buffer = null;
                }
                remoteSession.release(foundObject.lease);
            }
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        if (foundObject.lease == 0) {
            foundObject = FoundObject.read(body);
            dataExpected = foundObject.sent;
        } else {
            dataExpected = body.count("count") > 0;
        }
        replied = true;
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        body.count("index");
        int checksum = body.i32("checksum");
        if (!dataExpected || header.payloadBytes() != foundObject.bytes) {
            throw new ProtocolException(
                    "an object of %d bytes; allowed: %d".formatted(header.payloadBytes(), foundObject.bytes));
        }
        ReceiveBuffers.PooledBuffer pooledBuffer = remoteCacheContext.buffers().allocate(foundObject.bytes);
        if (pooledBuffer == null) {
            remoteCacheContext.counters().outOfMemory.increment();
            return PayloadSink.discard(header.payloadBytes(), sum -> dataExpected = false);
        }
        buffer = pooledBuffer;
        return PayloadSink.into(pooledBuffer.buffer(foundObject.bytes), sum -> onReceived(pooledBuffer, sum, checksum));
    }

    private void onReceived(ReceiveBuffers.PooledBuffer pooledBuffer, ChunkedCrc sum, int checksum) {
        dataExpected = false;
        remoteCacheContext.counters().bytesIn.add(foundObject.bytes);
        sum.update(MemorySegment.ofArray(objectQuery.key));
        if (sum.value() == checksum) {
            buffer = null;
            LeasedObjectView.ReceivedObjectView.ReceivedContents receivedContents =
                    new LeasedObjectView.ReceivedObjectView.ReceivedContents(
                            foundObject.lease, pooledBuffer, foundObject.bytes, checksum);
            view = new LeasedObjectView.ReceivedObjectView(remoteCacheContext, remoteSession, receivedContents);
        } else {
            remoteCacheContext.counters().corrupt.increment();
        }
    }

    @Override
    public boolean isComplete() {
        return replied && !dataExpected;
    }
}
