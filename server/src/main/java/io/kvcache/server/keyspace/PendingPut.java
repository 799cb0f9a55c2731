package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectWriter;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A value on its way in: fill its room as the bytes arrive, then [#commit].
///
/// **Ownership.** Who got it commits or closes it. Closing without commit gives the room back, and the older value
/// stays. Others may write the same key meanwhile; the value that is committed last stays.
///
/// **Threads.** One at a time.
public final class PendingPut implements AutoCloseable {

    /// What to do with the bytes.
    public enum State {
        /// There is room for them.
        WRITING,
        /// There is no room: throw the bytes away.
        REFUSED
    }

    /// Less is summed up with what comes after it.
    private static final int LEAST_SUM = 16 << 10;

    /// Before the first piece; nothing can be put there.
    private static final ByteBuffer NOWHERE = ByteBuffer.allocate(0);

    private final Changes changes;
    private final Key key;
    private final State state;
    private final long bytes;
    private final Writings.@Nullable Claim claim;
    private final @Nullable ObjectWriter writer;
    private final Span room;
    private int piece = -1;
    private long left;
    private long summed;
    private ByteBuffer current = NOWHERE;
    private boolean open;

    private PendingPut(
            Changes changes,
            Key key,
            State state,
            long bytes,
            Writings.@Nullable Claim claim,
            @Nullable ObjectWriter writer) {
        this.changes = changes;
        this.key = key;
        this.state = state;
        this.bytes = bytes;
        this.claim = claim;
        this.writer = writer;
        room = writer == null ? Span.of(List.of()) : Span.of(writer.segments());
        left = bytes;
        open = state == State.WRITING;
    }

    static PendingPut writing(Changes changes, Key key, long bytes, Writings.Claim claim, ObjectWriter writer) {
        return new PendingPut(changes, key, State.WRITING, bytes, claim, writer);
    }

    static PendingPut refused(Changes changes, Key key, long bytes) {
        return new PendingPut(changes, key, State.REFUSED, bytes, null, null);
    }

    public State state() {
        return state;
    }

    /// Size of the value.
    public long bytes() {
        return bytes;
    }

    /// The place for the next bytes: put them there by relative `put`. Has nothing remaining when the value is
    /// complete.
    ///
    /// @throws IllegalStateException when there is no room, or after commit or close
    public ByteBuffer room() {
        requireOpen();
        sum();
        while (!current.hasRemaining() && left > 0) {
            nextPiece();
        }
        return current;
    }

    /// So many bytes were put at the start of what [#room] answered last, without moving its position.
    public void landed(int count) {
        current.position(current.position() + count);
        sum();
    }

    /// Has what has come summed up while the caches still have it: at the end that would hold up the reply.
    private void sum() {
        long come = bytes - missing() - summed;
        if (come >= LEAST_SUM) {
            requireWriter().advance(come);
            summed += come;
        }
    }

    private void nextPiece() {
        piece++;
        current = room.pieces().get(piece).asByteBuffer();
        if (current.remaining() > left) {
            current.limit((int) left);
        }
        left -= current.remaining();
    }

    /// Bytes that have not been put yet.
    public long missing() {
        return left + current.remaining();
    }

    /// Makes the value findable in place of the older one.
    ///
    /// @param expiresAtMillis milliseconds since the epoch, or 0 for never
    /// @param note what a read of this value answers as [Value#note()]
    /// @param condition looked at while nobody else can change the key; when it fails, the put is given up
    /// @return whether the condition held
    /// @throws IllegalStateException when bytes are missing, or after commit or close
    public boolean commit(long expiresAtMillis, TensorNote note, Condition condition) {
        requireOpen();
        if (missing() > 0) {
            throw new IllegalStateException(missing() + " of " + bytes + " bytes are missing");
        }
        ObjectWriter own = requireWriter();
        room.write(bytes, Trailer.bytes(expiresAtMillis, note));
        open = false;
        try {
            if (claim != null) {
                claim.release();
            }
            return changes.commit(key, own, new KeyInfo(bytes, expiresAtMillis), condition);
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
        if (claim != null) {
            claim.end();
        }
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            end(requireWriter());
        }
    }
}
