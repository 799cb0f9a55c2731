package io.kvcache.core.codec;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class BlockCodecTest {

    private static final ValueLayout.OfShort VALUE =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int CHUNK = ChunkCoder.CHUNK_BYTES;

    private final Arena arena = Arena.ofConfined();
    private final SplittableRandom random = new SplittableRandom(7);
    private final BlockCodec codec = new BlockCodec();
    private final StoredVerifier verifier = new StoredVerifier();

    @AfterEach
    void free() {
        arena.close();
    }

    private MemorySegment values(int bytes, double escaped) {
        MemorySegment plain = arena.allocate(Pages.roundUp(bytes), Pages.BYTES);
        for (long at = 0; at + 2 <= bytes; at += 2) {
            int exponent = random.nextDouble() < escaped ? random.nextInt(256) : 112 + random.nextInt(12);
            plain.set(VALUE, at, (short) ((random.nextInt(1 << 16) & 0x807F) | exponent << 7));
        }
        return plain;
    }

    /// Memory in pieces of whole pages, cut anywhere.
    private List<MemorySegment> pieces(MemorySegment whole, boolean copy) {
        List<MemorySegment> pieces = new ArrayList<>();
        for (long at = 0; at < whole.byteSize(); ) {
            long length = Math.min(whole.byteSize() - at, Pages.BYTES * (1L + random.nextInt(40)));
            MemorySegment piece = arena.allocate(length, Pages.BYTES);
            if (copy) {
                piece.copyFrom(whole.asSlice(at, length));
            }
            pieces.add(piece);
            at += length;
        }
        return pieces;
    }

    private CodedBlock encode(MemorySegment plain, int bytes) {
        return requireNonNull(codec.encode(List.of(plain), bytes, staging(bytes)));
    }

    private MemorySegment staging(int bytes) {
        MemorySegment staging = arena.allocate(BlockCodec.encodeBytes(bytes), Pages.BYTES);
        staging.fill((byte) 0x5A);
        return staging;
    }

    private static int checksum(MemorySegment plain, int bytes) {
        return ChunkedCrc.of(plain.asSlice(0, bytes));
    }

    private boolean verify(StoredLayout layout, MemorySegment stored, int bytes, int checksum) {
        verifier.begin(layout, bytes, checksum);
        for (MemorySegment piece : pieces(stored, true)) {
            verifier.add(piece);
        }
        return verifier.isGood();
    }

    /// The stored bytes at the end of memory for the plain ones.
    private List<MemorySegment> loaded(CodedBlock coded, int bytes) {
        MemorySegment room = arena.allocate(Pages.roundUp(bytes), Pages.BYTES);
        room.asSlice(room.byteSize() - coded.bytes().byteSize()).copyFrom(coded.bytes());
        return pieces(room, true);
    }

    private MemorySegment joined(List<MemorySegment> pieces) {
        MemorySegment whole = arena.allocate(
                pieces.stream().mapToLong(MemorySegment::byteSize).sum());
        long at = 0;
        for (MemorySegment piece : pieces) {
            whole.asSlice(at).copyFrom(piece);
            at += piece.byteSize();
        }
        return whole;
    }

    @Test
    void givenBlocksOfManySizes_whenCodedAndDecodedInPlace_thenTheyComeBack() {
        for (int bytes : List.of(CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 3 * CHUNK + 4097, 32 * CHUNK, 2_500_000)) {
            MemorySegment plain = values(bytes, 0.001);
            int checksum = checksum(plain, bytes);
            CodedBlock coded = requireNonNull(codec.encode(pieces(plain, true), bytes, staging(bytes)));
            assertThat(coded.layout().pages(bytes) * (long) Pages.BYTES)
                    .isEqualTo(coded.bytes().byteSize());
            assertThat(verify(coded.layout(), coded.bytes(), bytes, checksum)).isTrue();
            List<MemorySegment> pages = loaded(coded, bytes);
            assertThat(codec.decode(coded.layout(), pages, bytes, checksum))
                    .as("%d bytes", bytes)
                    .isTrue();
            assertThat(joined(pages).asSlice(0, bytes).mismatch(plain.asSlice(0, bytes)))
                    .isEqualTo(-1);
        }
    }

    @Test
    void givenTwoMebibytesOfValues_whenCoded_thenTheHeadIsOnePage() {
        CodedBlock coded = encode(values(32 * CHUNK, 0.0005), 32 * CHUNK);
        assertThat(coded.layout()).isEqualTo(new StoredLayout(StoredLayout.EXPONENT_CODEC, 1));
        assertThat(coded.layout().pages(32 * CHUNK)).isEqualTo(385);
    }

    @Test
    void givenWhatDoesNotShrink_whenCoded_thenItStaysPlain() {
        assertThat(codec.encode(List.of(values(8 * CHUNK, 1)), 8 * CHUNK, staging(8 * CHUNK)))
                .as("exponents of all sizes")
                .isNull();
        assertThat(codec.encode(List.of(values(CHUNK - 1, 0)), CHUNK - 1, staging(CHUNK - 1)))
                .as("less than a chunk")
                .isNull();
    }

    @Test
    void givenMemoryThatHeldOtherBytes_whenCoded_thenNoneOfThemAreStored() {
        int bytes = CHUNK + 100;
        CodedBlock coded = encode(values(bytes, 0), bytes);
        MemorySegment head = coded.bytes().asSlice(0, Pages.BYTES);
        for (long at = 16; at < Pages.BYTES; at++) {
            assertThat(head.get(ValueLayout.JAVA_BYTE, at)).isZero();
        }
        MemorySegment tail = coded.bytes().asSlice(coded.bytes().byteSize() - Pages.BYTES);
        for (long at = 100; at < Pages.BYTES; at++) {
            assertThat(tail.get(ValueLayout.JAVA_BYTE, at)).isZero();
        }
    }

    @Test
    void givenAnyFlippedByteOrTornPage_whenDecoded_thenItIsRefusedOrWithoutEffect() {
        int bytes = 3 * CHUNK + 5000;
        MemorySegment plain = values(bytes, 0.01);
        int checksum = checksum(plain, bytes);
        CodedBlock coded = encode(plain, bytes);
        for (int round = 0; round < 2000; round++) {
            MemorySegment damaged = arena.allocate(coded.bytes().byteSize(), Pages.BYTES);
            damaged.copyFrom(coded.bytes());
            if (round % 4 == 0) {
                long page = Pages.offset(random.nextInt((int) (damaged.byteSize() / Pages.BYTES)));
                damaged.asSlice(page, Pages.BYTES).fill((byte) random.nextInt());
            } else {
                long at = round < 1000 ? random.nextInt(Pages.BYTES) : random.nextLong(damaged.byteSize());
                damaged.set(ValueLayout.JAVA_BYTE, at, (byte)
                        (damaged.get(ValueLayout.JAVA_BYTE, at) ^ 1 << random.nextInt(8)));
            }
            List<MemorySegment> pages = loaded(new CodedBlock(coded.layout(), damaged), bytes);
            boolean good = codec.decode(coded.layout(), pages, bytes, checksum);
            assertThat(verify(coded.layout(), damaged, bytes, checksum)).isEqualTo(good);
            if (good) {
                assertThat(joined(pages).asSlice(0, bytes).mismatch(plain.asSlice(0, bytes)))
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void givenBitsOfALayout_whenReadBack_thenItIsTheSame() {
        for (int bits = 0; bits < 1 << StoredLayout.BITS; bits++) {
            if (StoredLayout.isValid(bits >>> 8, bits & 255)) {
                assertThat(StoredLayout.ofBits(bits).toBits()).isEqualTo(bits);
            }
        }
        assertThat(StoredLayout.isValid(2, 1)).isFalse();
        assertThatThrownBy(() -> new StoredLayout(1, 0)).hasMessageContaining("at least 1");
    }
}
