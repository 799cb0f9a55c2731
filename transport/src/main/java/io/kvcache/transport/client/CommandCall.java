package io.kvcache.transport.client;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.client.RpcClient.RpcException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import org.jspecify.annotations.Nullable;

/// Passes one request of another protocol on, and receives its reply.
final class CommandCall implements DataConnection.ReplyHandler {

    private final RpcClient client;
    private long replyBytes = -1;
    private boolean complete;
    private String problem = "";
    private @Nullable CommandReply reply;

    private CommandCall(RpcClient client) {
        this.client = client;
    }

    /// @throws RpcException when there is no whole reply
    static CommandReply run(RpcClient client, RemoteSession session, int dialect, Payload request, long timeoutNanos)
            throws RpcException {
        CommandCall call = new CommandCall(client);
        BodyWriter body = new BodyWriter(Long.BYTES).u8(dialect).u8(0).u16(0).i32(0);
        boolean received = false;
        try {
            session.data()
                    .withConnection(
                            System.nanoTime() + timeoutNanos,
                            (line, patience) -> line.call(MessageType.EXECUTE, body, request, patience, call));
            CommandReply reply = call.reply;
            if (reply == null || !call.problem.isEmpty()) {
                throw RpcException.noReply(call.problem);
            }
            received = true;
            return reply;
        } finally {
            if (!received && call.reply != null) {
                call.reply.close();
            }
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        replyBytes = body.nonNegativeLong("bytes");
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        body.count("index");
        int checksum = body.i32("checksum");
        int bytes = header.payloadBytes();
        if (bytes != replyBytes || complete || reply != null) {
            throw new ProtocolException("a reply of %s bytes; allowed: %s, once".formatted(bytes, replyBytes));
        }
        ReceiveBuffers.PooledBuffer slot = client.buffers().allocate(bytes);
        if (slot == null) {
            client.counters().outOfMemory.increment();
            problem = "there is no memory for a reply of " + bytes + " bytes";
            return PayloadSink.discard(bytes, sum -> complete = true);
        }
        reply = new CommandReply(slot, bytes);
        return PayloadSink.into(slot.buffer(bytes), sum -> onReceived(sum, checksum, bytes));
    }

    private void onReceived(ChunkedCrc sum, int checksum, int bytes) {
        complete = true;
        client.counters().bytesIn.add(bytes);
        if (sum.value() != checksum) {
            client.counters().corrupt.increment();
            problem = "the reply fails its checksum";
        }
    }

    @Override
    public boolean isComplete() {
        return complete;
    }
}
