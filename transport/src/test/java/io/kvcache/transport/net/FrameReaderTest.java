package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Bytes become frames, however they are cut.
final class FrameReaderTest {

    /// Keeps what it hears as text.
    private static final class Recorder implements FrameHandler {

        private final List<String> heard = new ArrayList<>();
        private final Arena arena = Arena.ofAuto();

        @Override
        public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
            heard.add("%d %s".formatted(header.request(), body.text("text")));
        }

        @Override
        public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
            String text = body.text("text");
            int first = header.payloadBytes() / 3;
            List<MemorySegment> pieces = first == 0
                    ? List.of(arena.allocate(header.payloadBytes()))
                    : List.of(arena.allocate(first), arena.allocate(header.payloadBytes() - first));
            return PayloadSink.into(
                    pieces,
                    sum -> heard.add("%d %s %08x %08x".formatted(header.request(), text, sum.value(), all(pieces))));
        }

        private static int all(List<MemorySegment> pieces) {
            ChunkedCrc crc = new ChunkedCrc();
            pieces.forEach(crc::update);
            return crc.value();
        }

        @Override
        public void onClosed(DisconnectReason reason) {
            heard.add("closed");
        }
    }

    private static OutboundFrame message(long number, String text) {
        return new BodyWriter().text(text).request(MessageType.PING, number, 0);
    }

    private static OutboundFrame withPayload(long number, byte[] bytes) {
        MemorySegment memory = Arena.ofAuto().allocate(bytes.length);
        memory.copyFrom(MemorySegment.ofArray(bytes));
        return new BodyWriter().text("p").request(MessageType.FILL, number, 0, Payload.of(List.of(memory)));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 7, 31, 32, 33, 1000, 1 << 20})
    void givenFramesCutAnywhere_whenRead_thenTheSameFrames(int most) throws ProtocolException {
        Random random = new Random(most);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        List<String> expected = new ArrayList<>();
        for (int number = 1; number <= 30; number++) {
            if (number % 3 == 0) {
                byte[] bytes = new byte[1 + random.nextInt(number % 9 == 0 ? 200_000 : 20)];
                random.nextBytes(bytes);
                all.writeBytes(RecordingSink.bytes(withPayload(number, bytes)));
                int sum = ChunkedCrc.of(MemorySegment.ofArray(bytes));
                expected.add("%d p %08x %08x".formatted(number, sum, sum));
            } else {
                String text = "x".repeat(random.nextInt(number % 7 == 0 ? 20_000 : 50));
                all.writeBytes(RecordingSink.bytes(message(number, text)));
                expected.add(number + " " + text);
            }
        }
        Recorder recorder = new Recorder();
        FrameReader reader = new FrameReader(recorder, 4096);
        RecordingSink.feed(reader, all.toByteArray(), most);
        assertThat(recorder.heard).isEqualTo(expected);
        assertThat(reader.isInFrame()).isFalse();
    }

    @Test
    void givenHalfAFrame_whenAsked_thenItIsInIt() throws ProtocolException {
        FrameReader reader = new FrameReader(new Recorder(), 4096);
        byte[] bytes = RecordingSink.bytes(withPayload(1, new byte[9000]));
        for (int at = 0; at < bytes.length; at++) {
            assertThat(reader.isInFrame()).as("after %d bytes", at).isEqualTo(at > 0);
            RecordingSink.feed(reader, new byte[] {bytes[at]}, 1);
        }
        assertThat(reader.isInFrame()).isFalse();
    }

    private static byte[] header(int magic, int body, int payload) {
        return ByteBuffer.allocate(32)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(magic)
                .putShort((short) 3)
                .putShort((short) 0)
                .putLong(1)
                .putInt(body)
                .putInt(payload)
                .putLong(0)
                .array();
    }

    @Test
    void givenWhatIsNoFrame_whenRead_thenRefusedWithTheRange() {
        assertRefused(header(0x31435657, 0, 0), "0x31435657", "0x3143564b");
        assertRefused(header(FrameHeader.MAGIC, FrameHeader.MAX_BODY_BYTES + 1, 0), "4194305", "0 to 4194304");
        assertRefused(header(FrameHeader.MAGIC, -1, 0), "4294967295", "0 to 4194304");
        assertRefused(header(FrameHeader.MAGIC, 0, FrameHeader.MAX_PAYLOAD_BYTES + 1), "268435457", "268435456");
        assertRefused(header(FrameHeader.MAGIC, 0, 0), "at least 2 for text");
    }

    private static void assertRefused(byte[] bytes, String... words) {
        assertThatThrownBy(() -> RecordingSink.feed(new FrameReader(new Recorder(), 4096), bytes, 100))
                .isInstanceOf(ProtocolException.class)
                .hasMessageContainingAll(words);
    }

    @Test
    void givenALargeBodyAnnounced_whenItDoesNotCome_thenItsMemoryIsNotTaken() throws ProtocolException {
        List<FrameReader> readers = new ArrayList<>();
        for (int i = 0; i < 2000; i++) { // 8 GB, if it were
            FrameReader reader = new FrameReader(new Recorder(), 64);
            RecordingSink.feed(reader, header(FrameHeader.MAGIC, FrameHeader.MAX_BODY_BYTES, 0), 100);
            RecordingSink.feed(reader, new byte[100], 100);
            readers.add(reader);
        }
        assertThat(readers).allMatch(FrameReader::isInFrame);
    }

    @Test
    void givenALongBody_whenItIsHandled_thenItsMemoryIsNotKept() throws ProtocolException {
        Recorder recorder = new Recorder();
        FrameReader reader = new FrameReader(recorder, 4096);
        OutboundFrame brief = message(1, "x".repeat(60_000));
        RecordingSink.feed(reader, RecordingSink.bytes(brief), 1 << 20);
        int kept = reader.retainedBytes();
        assertThat(kept).as("what most need stays").isGreaterThan(60_000);
        BodyWriter many = new BodyWriter().text("p").bytes(new byte[1 << 20]);
        RecordingSink.feed(reader, RecordingSink.bytes(many.request(MessageType.PING, 2, 0)), 1 << 20);
        assertThat(reader.retainedBytes()).isLessThanOrEqualTo(kept);
        MemorySegment one = Arena.ofAuto().allocate(1);
        BodyWriter beforePayload = new BodyWriter().text("p").bytes(new byte[1 << 20]);
        OutboundFrame filling = beforePayload.request(MessageType.FILL, 3, 0, Payload.of(List.of(one)));
        RecordingSink.feed(reader, RecordingSink.bytes(filling), 1 << 20);
        assertThat(reader.retainedBytes()).isLessThanOrEqualTo(kept);
        assertThat(recorder.heard).hasSize(3);
    }

    @Test
    void givenDiscardedPayloads_whenRead_thenWhatFollowsIsHeard() throws ProtocolException {
        List<String> heard = new ArrayList<>();
        FrameHandler handler = new FrameHandler() {
            @Override
            public void onMessage(FrameHeader header, BodyReader body) {
                heard.add("message " + header.request());
            }

            @Override
            public PayloadSink onPayload(FrameHeader header, BodyReader body) {
                return PayloadSink.discard(header.payloadBytes(), sum -> heard.add("payload " + header.request()));
            }

            @Override
            public void onClosed(DisconnectReason reason) {
                heard.add("closed");
            }
        };
        FrameReader reader = new FrameReader(handler, 128);
        RecordingSink.feed(reader, RecordingSink.bytes(withPayload(1, new byte[300_000])), 100_000);
        RecordingSink.feed(reader, RecordingSink.bytes(message(2, "")), 100_000);
        assertThat(heard).containsExactly("payload 1", "message 2");
    }
}
