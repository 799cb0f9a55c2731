package io.kvcache.engines.llamacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is no state is told from one before llama.cpp sees it.
final class LlamaStateLayoutTest {

    private static final LlamaStateLayout.Layer ROWS = new LlamaStateLayout.Layer(1, 32, 1, 48, 1);
    private static final LlamaStateLayout.Layer ACROSS = new LlamaStateLayout.Layer(1, 32, 1, 2, 24);
    private static final int POSITION = 64;
    private static final int TOKENS = 3;

    private static LlamaStateLayout layout(boolean transposed) {
        LlamaStateLayout.Layer layer = transposed ? ACROSS : ROWS;
        return new LlamaStateLayout(transposed, List.of(layer, layer));
    }

    private static MemorySegment state(boolean transposed, int position, int tokens) {
        MemorySegment state = MemorySegment.ofArray(
                new byte[Math.toIntExact(layout(transposed).bytes(tokens))]);
        state.fill((byte) 0x77);
        long at = put(state, 0, tokens);
        for (int i = 0; i < tokens; i++) {
            at = put(state, at, position + i);
            at = put(state, at, 0);
        }
        at = put(state, at, transposed ? 1 : 0);
        at = put(state, at, 2);
        for (int i = 0; i < 2; i++) {
            at = put(state, put(state, put(state, at, 1), 32), 0) + 32L * tokens;
        }
        for (int i = 0; i < 2; i++) {
            at = transposed
                    ? put(state, put(state, put(state, at, 1), 2), 24)
                    : put(state, put(state, put(state, at, 1), 48), 0);
            at += 48L * tokens;
        }
        assertThat(at).isEqualTo(state.byteSize());
        return state;
    }

    private static long put(MemorySegment state, long at, int value) {
        state.set(ValueLayout.JAVA_INT_UNALIGNED, at, value);
        return at + Integer.BYTES;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAStateOfOneToken_whenRead_thenTheLayoutIsThat(boolean transposed) {
        assertThat(LlamaStateLayout.read(state(transposed, 0, 1), "a model")).isEqualTo(layout(transposed));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAState_whenComparedWithAnotherPlace_thenItDoesNotFit(boolean transposed) {
        LlamaStateLayout layout = layout(transposed);
        MemorySegment state = state(transposed, POSITION, TOKENS);
        assertThat(layout.matches(state, POSITION, TOKENS)).isTrue();
        assertThat(layout.matches(state, POSITION + 1, TOKENS)).isFalse();
        assertThat(layout.matches(state, POSITION, TOKENS - 1)).isFalse();
        assertThat(layout.matches(state.asSlice(0, state.byteSize() - 1), POSITION, TOKENS))
                .isFalse();
        assertThat(layout(!transposed).matches(state, POSITION, TOKENS)).isFalse();
    }

    /// Every byte that is no key or value decides.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAState_whenAnyByteOfItsOrderChanges_thenItDoesNotFit(boolean transposed) {
        LlamaStateLayout layout = layout(transposed);
        int decisive = 0;
        MemorySegment state = state(transposed, POSITION, TOKENS);
        for (long at = 0; at < state.byteSize(); at++) {
            byte was = state.get(ValueLayout.JAVA_BYTE, at);
            state.set(ValueLayout.JAVA_BYTE, at, (byte) (was ^ 0x40));
            decisive += layout.matches(state, POSITION, TOKENS) ? 0 : 1;
            state.set(ValueLayout.JAVA_BYTE, at, was);
        }
        assertThat(decisive).isEqualTo(12 + 8 * TOKENS + 4 * 12);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAnotherFormat_whenRead_thenItIsRefusedByName(boolean transposed) {
        MemorySegment state = state(transposed, 0, 1);
        for (long bytes : new long[] {0, 3, 20, state.byteSize() - 1}) {
            assertThatThrownBy(() -> LlamaStateLayout.read(state.asSlice(0, bytes), "a model"))
                    .isInstanceOf(UnsupportedLlamaException.class)
                    .hasMessageContaining("a model")
                    .hasMessageContaining(LlamaLibrary.SUPPORTED);
        }
        MemorySegment longer = MemorySegment.ofArray(new byte[(int) state.byteSize() + 4]);
        longer.asSlice(0, state.byteSize()).copyFrom(state);
        assertThatThrownBy(() -> LlamaStateLayout.read(longer, "a model"))
                .isInstanceOf(UnsupportedLlamaException.class);
        // As later builds do: a magic number first.
        longer.asSlice(4).copyFrom(state);
        longer.set(ValueLayout.JAVA_INT_UNALIGNED, 0, 0x6767_7371);
        assertThatThrownBy(() -> LlamaStateLayout.read(longer, "a model"))
                .isInstanceOf(UnsupportedLlamaException.class);
    }
}
