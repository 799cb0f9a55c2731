package io.kvcache.transport.net;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// A connection without a network: remembers what is sent, and hands bytes to a handler in pieces of any
/// size.
public final class RecordingSink implements FrameSink {

    private final ByteArrayOutputStream sent = new ByteArrayOutputStream();
    private final AtomicReference<@Nullable DisconnectReason> reason = new AtomicReference<>();

    private final String place;

    public RecordingSink() {
        this("");
    }

    /// @param place that the peer comes from
    public RecordingSink(String place) {
        this.place = place;
    }

    /// A frame with all that belongs to it.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record ReceivedFrame(FrameHeader header, byte[] body, byte[] payload) {

        public BodyReader reader() {
            return new BodyReader(ByteBuffer.wrap(body));
        }
    }

    /// All bytes of a frame.
    public static byte[] bytes(OutboundFrame frame) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        ByteBuffer head = frame.head().duplicate();
        byte[] bytes = new byte[head.remaining()];
        head.get(bytes);
        all.writeBytes(bytes);
        for (MemorySegment piece : frame.payload().pieces()) {
            all.writeBytes(piece.toArray(ValueLayout.JAVA_BYTE));
        }
        return all.toByteArray();
    }

    /// Feeds bytes to a reader, at most `most` at a time.
    public static void feed(FrameReader reader, byte[] bytes, int most) throws ProtocolException {
        int at = 0;
        while (at < bytes.length) {
            ByteBuffer target = reader.writableBuffer();
            int count = Math.min(Math.min(most, target.remaining()), bytes.length - at);
            target.put(bytes, at, count);
            reader.bytesWritten(count);
            at += count;
        }
    }

    /// The frames that bytes are.
    public static List<ReceivedFrame> frames(byte[] bytes) throws ProtocolException {
        List<ReceivedFrame> frames = new ArrayList<>();
        ByteBuffer from = ByteBuffer.wrap(bytes);
        while (from.hasRemaining()) {
            FrameHeader header = FrameHeader.read(from);
            byte[] body = new byte[header.bodyBytes()];
            byte[] payload = new byte[header.payloadBytes()];
            from.get(body).get(payload);
            frames.add(new ReceivedFrame(header, body, payload));
        }
        return frames;
    }

    @Override
    public synchronized boolean send(OutboundFrame frame) {
        if (reason.get() != null) {
            return false;
        }
        sent.writeBytes(bytes(frame));
        return true;
    }

    @Override
    public void close(DisconnectReason why) {
        reason.compareAndSet(null, why);
    }

    @Override
    public String peerAddress() {
        return place;
    }

    /// Why it was closed, or null.
    public @Nullable DisconnectReason reason() {
        return reason.get();
    }

    /// What was sent since the last time.
    public synchronized List<ReceivedFrame> take() throws ProtocolException {
        List<ReceivedFrame> frames = frames(sent.toByteArray());
        sent.reset();
        return frames;
    }
}
