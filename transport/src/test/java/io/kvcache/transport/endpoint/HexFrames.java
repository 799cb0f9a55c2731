package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/// Frames written out by hand, and whether an endpoint answers one by others.
final class HexFrames {

    private static final HexFormat HEX = HexFormat.of();
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    private HexFrames() {}

    private static String spaceless(String hex) {
        return hex.replaceAll("\\s", "");
    }

    /// Eight bytes as they go over the wire.
    static String u64(long value) {
        return HEX.toHexDigits(Long.reverseBytes(value));
    }

    /// A text of less than 256 bytes.
    static String text(String ascii) {
        byte[] bytes = ascii.getBytes(StandardCharsets.US_ASCII);
        return HEX.toHexDigits((byte) bytes.length) + "00" + HEX.formatHex(bytes);
    }

    /// Sends a frame, and waits for these answers.
    static void assertAnswers(TestClient testClient, String request, String answers) throws ProtocolException {
        String heard = hex(testClient.request(HEX.parseHex(spaceless(request))));
        assertHears(testClient, heard, answers);
    }

    /// Waits for frames that nothing of this moment has asked for.
    static void assertHears(TestClient testClient, String frames) throws ProtocolException {
        assertHears(testClient, "", frames);
    }

    private static void assertHears(TestClient testClient, String before, String frames) throws ProtocolException {
        String expected = spaceless(frames);
        String heard = before;
        long start = System.nanoTime();
        while (heard.length() < expected.length() && System.nanoTime() - start < PATIENCE_NANOS) {
            LockSupport.parkNanos(LOOK_NANOS);
            heard += hex(testClient.receivedFrames());
        }
        assertThat(heard).isEqualTo(expected);
    }

    private static String hex(List<RecordingSink.ReceivedFrame> frames) {
        return frames.stream().map(HexFrames::hex).collect(Collectors.joining());
    }

    private static String hex(RecordingSink.ReceivedFrame receivedFrame) {
        FrameHeader header = receivedFrame.header();
        ByteBuffer head = ByteBuffer.allocate(FrameHeader.BYTES + receivedFrame.body().length);
        header.write(head);
        head.put(receivedFrame.body()).flip();
        Payload payload = Payload.of(List.of(MemorySegment.ofArray(receivedFrame.payload())));
        return HEX.formatHex(RecordingSink.bytes(new OutboundFrame(head, payload)));
    }
}
