package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// The value of a request, on its way from the socket to its slots, to the heap, or to nowhere.
final class IncomingValue implements AutoCloseable {

    private final @Nullable PendingPut put;
    private final @Nullable String refusal;
    private final byte[] heap;
    private int heapBytes;
    private boolean kept;

    private IncomingValue(@Nullable PendingPut put, @Nullable String refusal, byte[] heap) {
        this.put = put;
        this.refusal = refusal;
        this.heap = heap;
    }

    static IncomingValue to(PendingPut put) {
        return new IncomingValue(put, null, Request.NOT_HERE);
    }

    /// A value that is thrown away as it comes.
    ///
    /// @param reply what the request is answered
    static IncomingValue refused(String reply) {
        return new IncomingValue(null, reply, Request.NOT_HERE);
    }

    /// A value that waits in the heap, for a command that runs later.
    static IncomingValue kept(int bytes) {
        return new IncomingValue(null, null, new byte[bytes]);
    }

    /// Its bytes, where they wait in the heap; none where not.
    byte[] heap() {
        return heap;
    }

    /// Moves bytes that have arrived.
    void take(ByteBuf in, int length) {
        if (heap.length > 0) {
            in.readBytes(heap, heapBytes, length);
            heapBytes += length;
            return;
        }
        if (put == null || put.state() != PendingPut.State.WRITING) {
            in.skipBytes(length);
            return;
        }
        ZeroCopyIo.read(in, length, put::writableBuffer);
    }

    /// The slot for the next bytes, or null when they go nowhere.
    @Nullable
    ByteBuffer room() {
        return put == null || put.state() != PendingPut.State.WRITING ? null : put.writableBuffer();
    }

    /// Bytes were put into the slot without going through [#take].
    void landed(int bytes) {
        if (put != null) {
            put.bytesWritten(bytes);
        }
    }

    /// Why the bytes are refused for what they are, or null when they are not.
    @Nullable
    String refusal() {
        return refusal;
    }

    /// Where the bytes went.
    ///
    /// @throws CommandException when they were refused for what they are
    PendingPut put() throws CommandException {
        if (put == null) {
            throw new CommandException(refusal == null ? "ERR" : refusal);
        }
        return put;
    }

    /// Leaves the value to its command, which goes on with it after the request is closed, and closes it.
    void keep() {
        kept = true;
    }

    /// Gives room back that was not used.
    @Override
    public void close() {
        if (put != null && !kept) {
            put.close();
        }
    }
}
