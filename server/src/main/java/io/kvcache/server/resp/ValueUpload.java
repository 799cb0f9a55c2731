package io.kvcache.server.resp;

import io.kvcache.server.forward.RequestBytes.PassedValue;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.net.SlotIo;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// The value of a request, on its way from the socket to its slots, to a buffer, to the heap, or to nowhere.
final class ValueUpload implements AutoCloseable {

    private @Nullable PendingPut put;
    private final @Nullable Keyspace keyspace;
    private final byte[] key;
    private final @Nullable PassedValue passed;
    private final @Nullable String rejection;
    private final byte[] heap;
    private int heapBytes;
    private boolean transferred;

    private ValueUpload(@Nullable PendingPut put, @Nullable PassedValue passed, @Nullable String refusal, byte[] heap) {
        this(put, passed, refusal, heap, null, RespRequest.VALUE_PLACEHOLDER);
    }

    private ValueUpload(
            @Nullable PendingPut put,
            @Nullable PassedValue passed,
            @Nullable String refusal,
            byte[] heap,
            @Nullable Keyspace keyspace,
            byte[] key) {
        this.put = put;
        this.keyspace = keyspace;
        this.key = key;
        this.passed = passed;
        this.rejection = refusal;
        this.heap = heap;
    }

    static ValueUpload toPut(PendingPut put) {
        return new ValueUpload(put, null, null, RespRequest.VALUE_PLACEHOLDER);
    }

    /// A small value, which waits in the heap until its command runs: storing it at once is faster than reserving
    /// room for it first.
    static ValueUpload small(Keyspace keyspace, byte[] key, int bytes) {
        return new ValueUpload(null, null, null, new byte[bytes], keyspace, key);
    }

    /// A value that is to be passed on to another server.
    ///
    /// @param value taken over
    static ValueUpload toPassOn(PassedValue value) {
        return new ValueUpload(null, value, null, RespRequest.VALUE_PLACEHOLDER);
    }

    /// A value that is thrown away as it comes.
    ///
    /// @param reply what the request is answered
    static ValueUpload rejected(String reply) {
        return new ValueUpload(null, null, reply, RespRequest.VALUE_PLACEHOLDER);
    }

    /// A value that waits in the heap, for a command that runs later.
    static ValueUpload buffered(int bytes) {
        return new ValueUpload(null, null, null, new byte[bytes]);
    }

    /// Its bytes, where they wait in the heap; none where not.
    byte[] heap() {
        return heap;
    }

    /// Moves bytes that have arrived.
    void onBytes(ByteBuf in, int length) {
        if (passed != null) {
            passed.bytes().writeBytes(in, length);
            return;
        }
        if (heap.length > 0) {
            in.readBytes(heap, heapBytes, length);
            heapBytes += length;
            return;
        }
        if (put == null || put.state() != PendingPut.State.WRITING) {
            in.skipBytes(length);
            return;
        }
        SlotIo.read(in, length, put::writableBuffer);
    }

    /// The slot for the next bytes, or null when they go nowhere.
    @Nullable
    ByteBuffer writableBuffer() {
        return put == null || put.state() != PendingPut.State.WRITING ? null : put.writableBuffer();
    }

    /// Bytes were put into the slot without going through [#onBytes].
    void bytesWritten(int bytes) {
        if (put != null) {
            put.bytesWritten(bytes);
        }
    }

    /// Returns whether the value is passed on to another server.
    boolean isPassedOn() {
        return passed != null;
    }

    /// The bytes of a value that is passed on.
    ByteBuf passedBytes() {
        if (passed == null) {
            throw new IllegalStateException("the value is not passed on");
        }
        return passed.bytes();
    }

    /// Gives a value free that was left to its command by [#transfer] and is passed on.
    void release() {
        if (passed != null) {
            passed.release();
        }
    }

    /// Why the bytes are refused for what they are, or null when they are not.
    @Nullable
    String rejection() {
        return rejection;
    }

    /// The destination of the bytes.
    ///
    /// @throws CommandException when they were refused for what they are
    PendingPut put() throws CommandException {
        PendingPut begun = put;
        if (begun == null && keyspace != null) {
            begun = keyspace.put(key, heap);
            put = begun;
        }
        if (begun == null) {
            throw new CommandException(rejection == null ? "ERR" : rejection);
        }
        return begun;
    }

    /// Returns whether the value can be stored by [#store].
    boolean isAtHand() {
        return keyspace != null && put == null;
    }

    /// Stores a value that is at hand; returns false when there is no room.
    boolean store() {
        if (keyspace == null) {
            throw new IllegalStateException("the value is not at hand");
        }
        return keyspace.store(key, heap);
    }

    /// Leaves the value to its command, which goes on with it after the request is closed, and closes it.
    void transfer() {
        transferred = true;
    }

    /// Gives room back that was not used.
    @Override
    public void close() {
        if (transferred) {
            return;
        }
        if (put != null) {
            put.close();
        }
        release();
    }
}
