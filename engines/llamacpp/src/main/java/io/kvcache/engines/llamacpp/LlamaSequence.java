package io.kvcache.engines.llamacpp;

import io.kvcache.engines.generator.EngineSequence;
import io.kvcache.engines.generator.SequenceBlockCopier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// One sequence in a context of its own, which goes back to the model afterwards.
///
/// **Threads.** One at a time.
final class LlamaSequence implements EngineSequence {

    private final LlamaModel model;
    private final LlamaContext context;
    private final TokenSampler choice;
    private final int blockTokens;

    /// Tokens whose state is here.
    private int tokens;

    private boolean closed;

    LlamaSequence(LlamaModel model, int blockTokens, TokenSampler choice) {
        this.model = model;
        this.blockTokens = blockTokens;
        this.choice = choice;
        context = model.borrowContext();
    }

    @Override
    public int tokenCount() {
        return tokens;
    }

    @Override
    public Blocks blocks(int count) {
        return new Blocks();
    }

    @Override
    public void truncate(int count) {
        tokens = count;
        context.truncate(count);
    }

    /// Computes at least two tokens, if there are two: one alone has other last bits.
    @Override
    public int prefill(int[] prompt) {
        if (tokens > 0 && tokens == prompt.length - 1) {
            truncate(tokens - 1);
        }
        context.decode(prompt, tokens, prompt.length);
        tokens = prompt.length;
        return choice.sample(context.logits());
    }

    @Override
    public int decode(int token) {
        context.decode(new int[] {token}, 0, 1);
        tokens++;
        return choice.sample(context.logits());
    }

    @Override
    public float[] logits() {
        return context.logits().toArray(ValueLayout.JAVA_FLOAT);
    }

    /// A second close would hand the context to two sequences; so it does nothing.
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            model.returnContext(context);
        }
    }

    /// Its state, block by block.
    final class Blocks implements SequenceBlockCopier {

        private final long stateBytes = model.layout().bytes(blockTokens);

        @Override
        public boolean copyIn(int block, MemorySegment from) {
            if (!model.layout().matches(from, block * blockTokens, blockTokens)) {
                return false;
            }
            MemorySegment state = from.asSlice(0, stateBytes);
            if (state.isNative()) {
                return context.copyIn(state);
            }
            try (Arena arena = Arena.ofConfined()) {
                return context.copyIn(arena.allocate(stateBytes, Long.BYTES).copyFrom(state));
            }
        }

        @Override
        public void copyOut(int block, MemorySegment into) {
            context.copyOut(block * blockTokens, (block + 1) * blockTokens, into.asSlice(0, stateBytes));
            into.asSlice(stateBytes).fill((byte) 0);
        }

        @Override
        public boolean matches(int block, SequenceBlockCopier other, double tolerance) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment ours = arena.allocate(stateBytes, Long.BYTES);
                MemorySegment theirs = arena.allocate(stateBytes, Long.BYTES);
                copyOut(block, ours);
                other.copyOut(block, theirs);
                return ours.mismatch(theirs) < 0;
            }
        }
    }
}
