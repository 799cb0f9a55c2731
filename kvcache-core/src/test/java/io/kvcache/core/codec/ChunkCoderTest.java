package io.kvcache.core.codec;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class ChunkCoderTest {

    private static final ValueLayout.OfShort VALUE =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int VALUES = ChunkCoder.CHUNK_BYTES / 2;
    private static final int QUARTER = VALUES / 4;

    private final Arena arena = Arena.ofConfined();
    private final ChunkCoder coder = new ChunkCoder();
    private final MemorySegment plain = arena.allocate(ChunkCoder.CHUNK_BYTES);

    @AfterEach
    void free() {
        arena.close();
    }

    private record Coded(int head, MemorySegment body, MemorySegment escapes) {}

    private Coded encode() {
        MemorySegment body = arena.allocate(ChunkCoder.BODY_BYTES);
        MemorySegment escapes = arena.allocate(VALUES);
        int head = coder.encode(plain, 0, body, 0, escapes, 0, VALUES);
        return new Coded(head, body, escapes.asSlice(0, ChunkCoder.escapes(head)));
    }

    private MemorySegment decode(Coded coded) {
        MemorySegment back = arena.allocate(ChunkCoder.CHUNK_BYTES);
        coder.decode(coded.head, coded.body, 0, coded.escapes, 0, back, 0);
        return back;
    }

    private void fill(SplittableRandom random, double escaped) {
        for (int i = 0; i < VALUES; i++) {
            int exponent = random.nextDouble() < escaped ? random.nextInt(256) : 112 + random.nextInt(12);
            plain.set(VALUE, 2L * i, (short) ((random.nextInt(1 << 16) & 0x807F) | exponent << 7));
        }
    }

    private Coded requireRoundTrip(String what) {
        Coded coded = encode();
        assertThat(decode(coded).mismatch(plain)).as(what).isEqualTo(-1);
        return coded;
    }

    /// Reads the body as the format has it, value by value.
    private static int decodeValue(Coded coded, int index, List<Integer> escapesLeft) {
        int lane = index % QUARTER;
        int quarter = index / QUARTER;
        int sign = coded.body.get(ValueLayout.JAVA_BYTE, (long) quarter / 2 * 2 * QUARTER + 2L * lane + quarter % 2)
                & 0xFF;
        int code = coded.body.get(VALUE, 4L * QUARTER + 2L * lane) >>> (4 * quarter) & 15;
        int exponent = switch (code) {
            case ChunkCoder.ZERO -> 0;
            case ChunkCoder.ESCAPE -> escapesLeft.removeFirst();
            default -> (coded.head & 0xFF) - code & 0xFF;
        };
        return (sign & 0x80) << 8 | exponent << 7 | (sign & 0x7F);
    }

    @Test
    void givenAChunk_whenReadAsTheFormatHasIt_thenItIsTheSame() {
        fill(new SplittableRandom(6), 0.05);
        Coded coded = encode();
        List<Integer> escapesLeft = new ArrayList<>();
        for (long at = 0; at < coded.escapes.byteSize(); at++) {
            escapesLeft.add(coded.escapes.get(ValueLayout.JAVA_BYTE, at) & 0xFF);
        }
        for (int lane = 0; lane < QUARTER; lane++) {
            for (int index = lane; index < VALUES; index += QUARTER) {
                assertThat(decodeValue(coded, index, escapesLeft))
                        .as("value %d", index)
                        .isEqualTo(plain.get(VALUE, 2L * index) & 0xFFFF);
            }
        }
        assertThat(escapesLeft).isEmpty();
    }

    @Test
    void givenEveryBitPattern_whenCoded_thenItComesBack() {
        int[] order = new SplittableRandom(1).ints(1 << 16, 0, 1 << 16).toArray();
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < VALUES; i++) {
                plain.set(VALUE, 2L * i, (short) (half * VALUES + i));
            }
            requireRoundTrip("half " + half + " in order");
            for (int i = 0; i < VALUES; i++) {
                plain.set(VALUE, 2L * i, (short) order[half * VALUES + i]);
            }
            requireRoundTrip("half " + half + " at random");
        }
    }

    @Test
    void givenAnyShareOfEscapes_whenCoded_thenItComesBack() {
        SplittableRandom random = new SplittableRandom(2);
        for (int percent = 0; percent <= 100; percent++) {
            fill(random, percent / 100.0);
            requireRoundTrip(percent + " % anywhere");
        }
    }

    @Test
    void givenOneExponentAlone_whenCoded_thenNothingIsEscaped() {
        for (int exponent = 0; exponent < 256; exponent++) {
            for (int i = 0; i < VALUES; i++) {
                plain.set(VALUE, 2L * i, (short) ((i & 0x807F) | exponent << 7));
            }
            assertThat(ChunkCoder.escapes(requireRoundTrip("exponent " + exponent).head))
                    .isZero();
        }
    }

    @Test
    void givenFewLargeValuesAndManyZeros_whenCoded_thenOnlyTheLargeAreEscaped() {
        fill(new SplittableRandom(3), 0);
        for (int i = 0; i < VALUES; i += 10) {
            plain.set(VALUE, 2L * i, (short) 0);
        }
        for (int i = 1; i < VALUES; i += 8192) {
            plain.set(VALUE, 2L * i, (short) (200 << 7));
        }
        assertThat(ChunkCoder.escapes(requireRoundTrip("outliers").head)).isEqualTo(4);
    }

    @Test
    void givenLessRoomThanEscapes_whenCoded_thenItIsRefused() {
        fill(new SplittableRandom(4), 0.1);
        int needed = (int) encode().escapes.byteSize();
        MemorySegment body = arena.allocate(ChunkCoder.BODY_BYTES);
        MemorySegment exact = arena.allocate(needed);
        assertThat(ChunkCoder.escapes(coder.encode(plain, 0, body, 0, exact, 0, needed)))
                .isEqualTo(needed);
        assertThat(coder.encode(plain, 0, body, 0, exact, 0, needed - 1)).isEqualTo(ChunkCoder.NO_ROOM);
    }

    @Test
    void givenBytesThatNoCoderWrote_whenDecoded_thenSomeChunkComes() {
        SplittableRandom random = new SplittableRandom(5);
        for (int round = 0; round < 20; round++) {
            Coded garbage = new Coded(
                    random.nextInt(256) | random.nextInt(1000) << 8,
                    arena.allocate(ChunkCoder.BODY_BYTES),
                    arena.allocate(1000));
            for (MemorySegment part : List.of(garbage.body, garbage.escapes)) {
                for (long at = 0; at < part.byteSize(); at++) {
                    part.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt());
                }
            }
            assertThat(decode(garbage).byteSize()).isEqualTo(ChunkCoder.CHUNK_BYTES);
        }
    }
}
