package io.kvcache.core.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockKey;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class BlockContentTest {

    private static final BlockContent CONTENT = BlockContent.of(new BlockKey(1, 2));

    @Test
    void givenAnySizeAndOffset_whenFilledInPieces_thenItIsThePieceOfTheWhole() {
        MemorySegment whole = CONTENT.toHeapSegment(100);
        for (int offset = 0; offset < 20; offset++) {
            for (int size = 0; size < 40; size++) {
                MemorySegment piece = MemorySegment.ofArray(new byte[size]);
                CONTENT.fill(offset, piece);
                assertThat(piece.mismatch(whole.asSlice(offset, size))).isEqualTo(-1);
                assertThat(CONTENT.mismatch(offset, piece)).isEqualTo(-1);
            }
        }
    }

    @Test
    void givenOneWrongByte_whenChecked_thenItsPlaceIsNamed() {
        for (int wrong = 0; wrong < 37; wrong++) {
            MemorySegment piece = MemorySegment.ofArray(new byte[37]);
            CONTENT.fill(3, piece);
            piece.set(ValueLayout.JAVA_BYTE, wrong, (byte) (piece.get(ValueLayout.JAVA_BYTE, wrong) + 1));
            assertThat(CONTENT.mismatch(3, piece)).isEqualTo(wrong);
            assertThatThrownBy(() -> CONTENT.requireEqual(3, piece))
                    .isInstanceOf(AssertionError.class)
                    .hasMessageContaining("byte ");
        }
    }

    @Test
    void givenOtherKeysOrVersions_whenCompared_thenNoContentIsAnothers() {
        MemorySegment first = CONTENT.toHeapSegment(4096);
        assertThat(BlockContent.of(2, 1).mismatch(first)).isZero();
        assertThat(BlockContent.of(1, 3).mismatch(first)).isZero();
        assertThat(CONTENT.withVersion(1).mismatch(first)).isZero();
        assertThat(CONTENT.mismatch(4096, first)).isZero();
        assertThat(BlockContent.of(1, 2)).isEqualTo(CONTENT);
    }
}
