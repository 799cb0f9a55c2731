package io.kvcache.transport.client;

import io.kvcache.core.RangeQuery;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.client.RpcClient.RpcException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.RangeRequest;
import java.lang.foreign.MemorySegment;

/// Receives the same bytes of several blocks, by one request. The first range that does not arrive as it
/// was sent is the last: it does not reach the caller's memory, nor does any behind it.
final class RangeReceiver implements DataConnection.ReplyHandler {

    private final RpcClient client;
    private final RangeQuery query;
    private final RangeRequest request;

    /// Memory for one range.
    private final ReceiveBuffers.PooledBuffer buffer;

    private boolean replied;
    private boolean broken;
    private int next;
    private int copied;

    /// Ranges that the server still sends.
    private int expected;

    private RangeReceiver(
            RpcClient client, RangeQuery query, RangeRequest request, ReceiveBuffers.PooledBuffer buffer) {
        this.client = client;
        this.query = query;
        this.request = request;
        this.buffer = buffer;
        next = request.from();
    }

    /// Copies the ranges that the server has or gets in time. A failure ends the run.
    ///
    /// @param timeoutNanos how long the server may wait
    /// @return the number of blocks
    /// @throws RpcException when not even the first request had a reply
    static int read(RpcClient client, RemoteSession session, RangeQuery query, long timeoutNanos) throws RpcException {
        ReceiveBuffers.PooledBuffer buffer =
                client.buffers().allocate(query.range().bytes());
        if (buffer == null) {
            client.counters().outOfMemory.increment();
            return 0;
        }
        try {
            return read(client, session, query, timeoutNanos, buffer);
        } finally {
            buffer.free();
        }
    }

    private static int read(
            RpcClient client,
            RemoteSession session,
            RangeQuery query,
            long timeoutNanos,
            ReceiveBuffers.PooledBuffer buffer)
            throws RpcException {
        int bytes = (int) query.range().bytes();
        long start = System.nanoTime();
        int at = query.from();
        boolean more = true;
        while (more && at < query.end()) {
            int count = Math.min(query.end() - at, RangeRequest.maxBlocks(bytes));
            long left = Math.max(0, timeoutNanos - (System.nanoTime() - start));
            RangeRequest request =
                    new RangeRequest(at, count, (int) query.range().offset(), bytes, left);
            RangeReceiver receiver = new RangeReceiver(client, query, request, buffer);
            try {
                receiver.call(session);
            } catch (RpcException failed) {
                if (at + receiver.copied == query.from()) {
                    throw failed;
                }
                client.countFailure();
                more = false;
            }
            at += receiver.copied;
            more &= receiver.copied == count;
        }
        return at - query.from();
    }

    private void call(RemoteSession session) throws RpcException {
        int number = session.namespaceNumber(query.chain().namespace());
        long until = System.nanoTime() + client.options().totalTimeoutNanos(request.timeoutNanos());
        DataConnection.ChainRequest call =
                new DataConnection.ChainRequest(MessageType.READ_RANGE, query.chain(), number, request::write);
        session.data().withConnection(until, (line, patience) -> line.call(call, patience, this));
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        int count = body.count("count");
        if (count > request.count()) {
            throw new ProtocolException("%s ranges; allowed: 0 to %s".formatted(count, request.count()));
        }
        expected = count;
        replied = true;
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        int index = body.count("block");
        int checksum = body.i32("checksum");
        if (expected == 0 || index != next) {
            throw new ProtocolException("block %s; allowed: %s of %s more".formatted(index, next, expected));
        }
        if (header.payloadBytes() != request.bytes()) {
            throw new ProtocolException(
                    "a range of %s bytes; allowed: %s".formatted(header.payloadBytes(), request.bytes()));
        }
        next++;
        return broken
                ? PayloadSink.discard(request.bytes(), sum -> expected--)
                : PayloadSink.into(buffer.buffer(request.bytes()), sum -> onReceived(index, checksum, sum));
    }

    private void onReceived(int index, int checksum, ChunkedCrc sum) {
        expected--;
        client.counters().bytesIn.add(request.bytes());
        if (sum.value() == checksum) {
            MemorySegment.copy(
                    buffer.segment(request.bytes()), 0, query.into().get(index - query.from()), 0, request.bytes());
            copied++;
        } else {
            client.counters().corrupt.increment();
            broken = true;
        }
    }

    @Override
    public boolean isComplete() {
        return replied && expected == 0;
    }
}
