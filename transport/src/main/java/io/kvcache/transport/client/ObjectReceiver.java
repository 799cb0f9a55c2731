package io.kvcache.transport.client;

import io.kvcache.core.ObjectView;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Receives one object.
final class ObjectReceiver implements DataConnection.ReplyHandler {

    private final RemoteContext client;
    private final RemoteSession session;
    private final ObjectQuery query;
    private FoundObject found;
    private boolean dataExpected;
    private boolean replied;
    private ReceiveBuffers.@Nullable PooledBuffer buffer;
    private @Nullable ObjectView view;

    /// Reply of the server to a look-up.
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

    /// Object that a caller wants.
    ///
    /// @param untilNanos when the caller waits no longer
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record ObjectQuery(byte[] key, long untilNanos) {}

    private ObjectReceiver(RemoteContext client, RemoteSession session, ObjectQuery query, FoundObject found) {
        this.client = client;
        this.session = session;
        this.query = query;
        this.found = found;
    }

    /// Requests a resident object, and waits until it is here.
    ///
    /// @param body of GET_OBJECT
    static @Nullable ObjectView get(RemoteContext client, RemoteSession session, ObjectQuery query, BodyWriter body)
            throws RpcException {
        ObjectReceiver arrival = new ObjectReceiver(client, session, query, FoundObject.NOT_FOUND);
        return arrival.run(MessageType.GET_OBJECT, body);
    }

    /// Reads an object of a lease.
    static @Nullable ObjectView read(RemoteContext client, RemoteSession session, ObjectQuery query, FoundObject found)
            throws RpcException {
        ObjectReceiver arrival = new ObjectReceiver(client, session, query, found);
        return arrival.run(
                MessageType.READ, new BodyWriter().i64(found.lease).i32(0).i32(1));
    }

    private @Nullable ObjectView run(MessageType type, BodyWriter body) throws RpcException {
        try {
            session.data().withConnection(query.untilNanos, (line, patience) -> line.call(type, body, patience, this));
            return view;
        } finally {
            if (view == null) {
                if (buffer != null) {
                    buffer.free();
                    buffer = null;
                }
                session.release(found.lease);
            }
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        if (found.lease == 0) {
            found = FoundObject.read(body);
            dataExpected = found.sent;
        } else {
            dataExpected = body.count("count") > 0;
        }
        replied = true;
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        body.count("index");
        int checksum = body.i32("checksum");
        if (!dataExpected || header.payloadBytes() != found.bytes) {
            throw new ProtocolException(
                    "an object of %s bytes; allowed: %s".formatted(header.payloadBytes(), found.bytes));
        }
        ReceiveBuffers.PooledBuffer slot = client.buffers().allocate(found.bytes);
        if (slot == null) {
            client.counters().outOfMemory.increment();
            return PayloadSink.discard(header.payloadBytes(), sum -> dataExpected = false);
        }
        buffer = slot;
        return PayloadSink.into(slot.buffer(found.bytes), sum -> onReceived(slot, sum, checksum));
    }

    private void onReceived(ReceiveBuffers.PooledBuffer slot, ChunkedCrc sum, int checksum) {
        dataExpected = false;
        client.counters().bytesIn.add(found.bytes);
        sum.update(MemorySegment.ofArray(query.key));
        if (sum.value() == checksum) {
            buffer = null;
            view = LeasedObjectView.received(client, session, found, slot, checksum);
        } else {
            client.counters().corrupt.increment();
        }
    }

    @Override
    public boolean isComplete() {
        return replied && !dataExpected;
    }
}
