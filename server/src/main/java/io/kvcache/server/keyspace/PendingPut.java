package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectWriter;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A value on its way in: fill its room as the bytes arrive, then [#commit].
///
/// **Ownership.** The receiver commits or closes it. Closing without commit gives the room back, and the older
/// value stays. Others may write the same key meanwhile; the value that is committed last stays.
///
/// **Threads.** One at a time.
public final class PendingPut implements AutoCloseable {

    /// The ways to treat the bytes.
    public enum State {
        /// There is room for them.
        WRITING,
        /// There is no room: throw the bytes away.
        REJECTED,
        /// It continues a sequence, and what would go for its sake promises more: throw the bytes away, and
        /// answer as if they were stored. A reader finds a shorter prefix.
        DECLINED
    }

    /// Less is summed up with what comes after it.
    private static final int MIN_CHECKSUM_BYTES = 16 << 10;

    /// Before the first piece; nothing can be put there.
    private static final ByteBuffer NO_BUFFER = ByteBuffer.allocate(0);

    private final KeyspaceWrites keyspaceWrites;
    private final ObjectKey key;
    private final State state;
    private final long bytes;
    private boolean reserved;
    private final @Nullable ObjectWriter writer;
    private final SegmentedBuffer room;
    private int piece = -1;
    private long left;
    private long checksummed;
    private ByteBuffer current = NO_BUFFER;
    private boolean open;

    /// A value that is not to be stored.
    PendingPut(KeyspaceWrites keyspaceWrites, ObjectKey key, long bytes, State state) {
        this(keyspaceWrites, key, bytes, null, state);
    }

    /// A value for which the quota has room.
    PendingPut(KeyspaceWrites keyspaceWrites, ObjectKey key, long bytes, ObjectWriter writer) {
        this(keyspaceWrites, key, bytes, writer, State.WRITING);
    }

    private PendingPut(
            KeyspaceWrites keyspaceWrites, ObjectKey key, long bytes, @Nullable ObjectWriter writer, State state) {
        this.keyspaceWrites = keyspaceWrites;
        this.key = key;
        this.bytes = bytes;
        reserved = writer != null;
        this.writer = writer;
        this.state = state;
        room = writer == null ? SegmentedBuffer.of(List.of()) : SegmentedBuffer.of(writer.segments());
        left = bytes;
        open = writer != null;
    }

    public State state() {
        return state;
    }

    /// The place for the next bytes: put them there by relative `put`. Has nothing remaining when the value is
    /// complete.
    ///
    /// @throws IllegalStateException when there is no room, or after commit or close
    public ByteBuffer writableBuffer() {
        requireOpen();
        updateChecksum();
        while (!current.hasRemaining() && left > 0) {
            nextSegment();
        }
        return current;
    }

    /// So many bytes were put at the start of what [#writableBuffer] answered last, without moving its position.
    public void bytesWritten(int count) {
        current.position(current.position() + count);
        updateChecksum();
    }

    /// Has what has come summed up while the caches still have it: at the end that would hold up the reply.
    private void updateChecksum() {
        long come = bytes - remainingBytes() - checksummed;
        if (come >= MIN_CHECKSUM_BYTES) {
            requireWriter().advance(come);
            checksummed += come;
        }
    }

    private void nextSegment() {
        piece++;
        current = room.segments().get(piece).asByteBuffer();
        if (current.remaining() > left) {
            current.limit((int) left);
        }
        left -= current.remaining();
    }

    /// Bytes that have not been put yet.
    public long remainingBytes() {
        return left + current.remaining();
    }

    /// Makes the value findable in place of the older one.
    ///
    /// @param expiresAtMillis milliseconds since the epoch, or 0 for never
    /// @param note what a read of this value answers as [PinnedValue#tensorMetadata()]
    /// @param condition evaluated while no other client can change the key; when it fails, the put is given up
    /// @return whether the condition held
    /// @throws IllegalStateException when bytes are missing, or after commit or close
    public boolean commit(long expiresAtMillis, TensorMetadata note, Condition condition) {
        return commit(expiresAtMillis, note, condition, null);
    }

    /// As [#commit], if the value that the key has now is still the one that is held.
    ///
    /// @param older held by the caller, or null if the key must be absent
    public boolean commitInPlaceOf(@Nullable PinnedValue older, long expiresAtMillis) {
        Condition condition = older == null ? Condition.IF_ABSENT : Condition.IF_PRESENT;
        return commit(expiresAtMillis, TensorMetadata.NONE, condition, older);
    }

    private boolean commit(
            long expiresAtMillis, TensorMetadata note, Condition condition, @Nullable PinnedValue older) {
        requireOpen();
        if (remainingBytes() > 0) {
            throw new IllegalStateException(remainingBytes() + " of " + bytes + " bytes are missing");
        }
        ObjectWriter own = requireWriter();
        long number = keyspaceWrites.writeNumber();
        room.write(bytes, ValueTrailer.bytes(expiresAtMillis, note, number));
        open = false;
        try {
            onReceived();
            return keyspaceWrites.commit(key, own, new KeyInfo(bytes, expiresAtMillis), number, condition, older);
        } finally {
            end(own);
        }
    }

    /// Whether a value may take its key.
    public enum Condition {
        ALWAYS,
        /// Only while the key is absent.
        IF_ABSENT,
        /// Only while the key is there.
        IF_PRESENT
    }

    private ObjectWriter requireWriter() {
        if (writer == null) {
            throw new IllegalStateException("nothing is reserved: the state is " + state);
        }
        return writer;
    }

    private void requireOpen() {
        requireWriter();
        if (!open) {
            throw new IllegalStateException("the put is committed or closed");
        }
    }

    private void end(ObjectWriter own) {
        own.close();
        onReceived();
        keyspaceWrites.endWrite(key);
    }

    /// The bytes are not on their way any more; only the first call counts.
    private void onReceived() {
        if (reserved) {
            reserved = false;
            keyspaceWrites.onReceived(key, bytes);
        }
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            end(requireWriter());
        }
    }

    /// Memory in pieces, addressed as if it were one.
    private record SegmentedBuffer(List<MemorySegment> segments, long bytes) {

        static SegmentedBuffer of(List<MemorySegment> pieces) {
            long bytes = 0;
            for (MemorySegment piece : pieces) {
                bytes += piece.byteSize();
            }
            return new SegmentedBuffer(pieces, bytes);
        }

        /// Fills the range from `offset` on with `source`.
        void write(long offset, byte[] source) {
            Objects.checkFromIndexSize(offset, source.length, bytes);
            long start = 0;
            for (MemorySegment piece : segments) {
                long from = Math.max(offset, start);
                long to = Math.min(offset + source.length, start + piece.byteSize());
                if (from < to) {
                    int at = (int) (from - offset);
                    MemorySegment.copy(source, at, piece, ValueLayout.JAVA_BYTE, from - start, (int) (to - from));
                }
                start += piece.byteSize();
            }
        }
    }
}
