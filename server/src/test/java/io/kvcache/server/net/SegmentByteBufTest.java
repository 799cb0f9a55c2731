package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.net.SlotIo.SegmentByteBuf;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SegmentByteBufTest {

    private static final int FROM = 13;
    private static final int BYTES = 1000;

    private final byte[] content = new byte[BYTES];
    private final MemorySegment memory = Arena.ofAuto().allocate(2 * BYTES);

    SegmentByteBufTest() {
        new Random(1).nextBytes(content);
        MemorySegment.copy(content, 0, memory, ValueLayout.JAVA_BYTE, FROM, BYTES);
    }

    @Test
    void givenASpan_whenReadInAnyWay_thenItsBytes() throws IOException {
        ByteBuf expected = Unpooled.wrappedBuffer(content);
        ByteBuf span = SegmentByteBuf.of(memory.asReadOnly(), FROM, BYTES, null);
        assertThat(span.readableBytes()).isEqualTo(BYTES);
        for (int i = 0; i < BYTES - Long.BYTES; i++) {
            assertThat(span.getByte(i)).isEqualTo(expected.getByte(i));
            assertThat(span.getShort(i)).isEqualTo(expected.getShort(i));
            assertThat(span.getShortLE(i)).isEqualTo(expected.getShortLE(i));
            assertThat(span.getMedium(i)).isEqualTo(expected.getMedium(i));
            assertThat(span.getMediumLE(i)).isEqualTo(expected.getMediumLE(i));
            assertThat(span.getInt(i)).isEqualTo(expected.getInt(i));
            assertThat(span.getIntLE(i)).isEqualTo(expected.getIntLE(i));
            assertThat(span.getLong(i)).isEqualTo(expected.getLong(i));
            assertThat(span.getLongLE(i)).isEqualTo(expected.getLongLE(i));
        }
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        span.getBytes(0, stream, BYTES);
        assertThat(stream.toByteArray()).isEqualTo(content);
        byte[] array = new byte[BYTES];
        span.getBytes(0, array);
        assertThat(array).isEqualTo(content);
        ByteBuf buffer = Unpooled.buffer(BYTES);
        span.getBytes(0, buffer);
        assertThat(buffer).isEqualTo(expected);
        assertThat(span.nioBuffer(5, 20)).isEqualTo(ByteBuffer.wrap(content, 5, 20));
        assertThat(span.memoryAddress()).isEqualTo(memory.address() + FROM);
        assertThat(span.copy()).isEqualTo(expected);
        assertThat(span.readSlice(100)).isEqualTo(expected.slice(0, 100));
        span.release();
    }

    @Test
    void givenASpan_whenWrittenTo_thenItRefuses() {
        ByteBuf span = SegmentByteBuf.of(memory.asReadOnly(), FROM, BYTES, null);
        assertThat(span.isReadOnly()).isTrue();
        assertThatThrownBy(() -> span.setByte(0, 1)).isInstanceOf(ReadOnlyBufferException.class);
        assertThatThrownBy(() -> span.setBytes(0, content)).isInstanceOf(ReadOnlyBufferException.class);
        assertThatThrownBy(() -> span.capacity(1)).isInstanceOf(ReadOnlyBufferException.class);
        span.release();
    }

    @Test
    void givenSeveralHolders_whenTheLastReleases_thenItIsSaidOnceAndNobodyReadsAnyMore() {
        AtomicInteger released = new AtomicInteger();
        ByteBuf span = SegmentByteBuf.of(memory, FROM, BYTES, released::incrementAndGet);
        ByteBuf part = span.retainedSlice(0, 10);
        span.release();
        assertThat(released).hasValue(0);
        assertThat(part.getByte(0)).isEqualTo(content[0]);
        part.release();
        assertThat(released).hasValue(1);
        assertThatThrownBy(() -> span.getByte(0)).isInstanceOf(IllegalReferenceCountException.class);
        assertThatThrownBy(span::release).isInstanceOf(IllegalReferenceCountException.class);
    }

    @Test
    void givenAReleasedSpan_whenAnotherIsMade_thenItIsOfTheOthersBytes() {
        for (int from = 0; from < 100; from++) {
            ByteBuf span = SegmentByteBuf.of(memory, from, 100 + from, null);
            assertThat(span.readableBytes()).isEqualTo(100 + from);
            assertThat(span.getByte(3)).isEqualTo(memory.get(ValueLayout.JAVA_BYTE, from + 3L));
            span.skipBytes(from);
            span.release();
        }
    }
}
