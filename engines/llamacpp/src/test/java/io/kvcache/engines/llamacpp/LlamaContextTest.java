package io.kvcache.engines.llamacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// State that is taken out of one sequence, piece by piece, and put into another.
@Timeout(300)
final class LlamaContextTest {

    private static final int[] PROMPT =
            new SplittableRandom(5).ints(90, 3, RandomGguf.VOCABULARY).toArray();
    private static final int BLOCK = 16;

    private static LlamaModel model(boolean flashAttention) {
        return flashAttention
                ? LlamaTestModels.load(RandomGguf.SMALL, "flash.gguf", LlamaTestModels.OPTIONS.withFlashAttention(true))
                : LlamaTestModels.load(RandomGguf.SMALL, "plain.gguf", LlamaTestModels.OPTIONS);
    }

    /// The state of the first blocks of a prompt.
    private static MemorySegment[] blocks(LlamaModel model, LlamaContext from, int count, Arena arena) {
        MemorySegment[] blocks = new MemorySegment[count];
        for (int i = 0; i < count; i++) {
            blocks[i] = arena.allocate(model.layout().bytes(BLOCK));
            assertThat(from.stateBytes(i * BLOCK, (i + 1) * BLOCK)).isEqualTo(blocks[i].byteSize());
            from.copyOut(i * BLOCK, (i + 1) * BLOCK, blocks[i]);
            assertThat(model.layout().matches(blocks[i], i * BLOCK, BLOCK)).isTrue();
        }
        return blocks;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenBlocksOfAnotherContext_whenTheRestIsComputed_thenLogitsAndStateAreTheSame(boolean flashAttention) {
        try (LlamaModel model = model(flashAttention);
                LlamaContext whole = model.newContext();
                LlamaContext resumed = model.newContext();
                Arena arena = Arena.ofConfined()) {
            assertThat(model.layout().transposed()).isEqualTo(!flashAttention);
            whole.decode(PROMPT, 0, PROMPT.length);
            float[] right = LlamaTestModels.logits(whole);
            MemorySegment[] blocks = blocks(model, whole, 4, arena);
            for (MemorySegment block : blocks) {
                assertThat(resumed.copyIn(block)).isTrue();
            }
            resumed.decode(PROMPT, 4 * BLOCK, PROMPT.length);
            assertThat(LlamaTestModels.logits(resumed)).isEqualTo(right);
            MemorySegment[] again = blocks(model, resumed, 5, arena);
            for (int i = 0; i < 4; i++) {
                assertThat(again[i].mismatch(blocks[i])).isEqualTo(-1);
            }
            MemorySegment fifth = arena.allocate(model.layout().bytes(BLOCK));
            whole.copyOut(4 * BLOCK, 5 * BLOCK, fifth);
            assertThat(again[4].mismatch(fifth)).isEqualTo(-1);
        }
    }

    /// Without it, equal logits would prove nothing.
    @Test
    void givenABlockWithAnotherByte_whenTheRestIsComputed_thenLogitsDiffer() {
        try (LlamaModel model = model(false);
                LlamaContext whole = model.newContext();
                LlamaContext resumed = model.newContext();
                Arena arena = Arena.ofConfined()) {
            whole.decode(PROMPT, 0, PROMPT.length);
            MemorySegment[] blocks = blocks(model, whole, 2, arena);
            long last = blocks[1].byteSize() - 1;
            blocks[1].set(ValueLayout.JAVA_BYTE, last, (byte) (blocks[1].get(ValueLayout.JAVA_BYTE, last) ^ 0x40));
            assertThat(model.layout().matches(blocks[1], BLOCK, BLOCK)).isTrue();
            assertThat(resumed.copyIn(blocks[0])).isTrue();
            assertThat(resumed.copyIn(blocks[1])).isTrue();
            resumed.decode(PROMPT, 2 * BLOCK, PROMPT.length);
            assertThat(LlamaTestModels.logits(resumed)).isNotEqualTo(LlamaTestModels.logits(whole));
        }
    }

    @Test
    void givenASequence_whenItIsTrimmed_thenItGoesOnFromThere() {
        try (LlamaModel model = model(false);
                LlamaContext straight = model.newContext();
                LlamaContext trimmed = model.newContext()) {
            straight.decode(PROMPT, 0, PROMPT.length);
            int[] other = PROMPT.clone();
            Arrays.fill(other, 40, other.length, 9);
            trimmed.decode(other, 0, other.length);
            assertThat(LlamaTestModels.logits(trimmed)).isNotEqualTo(LlamaTestModels.logits(straight));
            trimmed.truncate(40);
            trimmed.decode(PROMPT, 40, PROMPT.length);
            assertThat(LlamaTestModels.logits(trimmed)).isEqualTo(LlamaTestModels.logits(straight));
        }
    }

    @Test
    void givenMoreTokensThanOneBatch_whenCutAnywhere_thenLogitsAreTheSame() {
        int[] tokens =
                new SplittableRandom(6).ints(700, 3, RandomGguf.VOCABULARY).toArray();
        try (LlamaModel model = model(false);
                LlamaContext once = model.newContext();
                LlamaContext cut = model.newContext()) {
            // One token would be left over of the first 513; it is not computed alone.
            once.decode(tokens, 0, 513);
            cut.decode(tokens, 0, 300);
            cut.decode(tokens, 300, 513);
            assertThat(LlamaTestModels.logits(cut)).isEqualTo(LlamaTestModels.logits(once));
            once.decode(tokens, 513, 700);
            cut.decode(tokens, 513, 515);
            cut.decode(tokens, 515, 700);
            assertThat(LlamaTestModels.logits(cut)).isEqualTo(LlamaTestModels.logits(once));
        }
    }

    @Test
    void givenTokensThatAreNone_whenComputed_thenTheMessageSaysWhere() {
        try (LlamaModel model = model(false);
                LlamaContext context = model.newContext()) {
            assertThatThrownBy(() -> context.decode(new int[] {1, RandomGguf.VOCABULARY}, 0, 2))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("token 512, at 1,")
                    .hasMessageContaining("0 to 511");
            assertThatThrownBy(() -> context.decode(new int[] {-1}, 0, 1)).isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(context::logits).isInstanceOf(IllegalStateException.class);
        }
    }
}
