package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import io.kvcache.engines.generator.EngineSequence;
import io.kvcache.engines.generator.EngineSequence.SequenceBlockCopier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

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

    /// Chooses the next token from what a model says of every token.
    ///
    /// **Threads.** One.
    static final class TokenSampler {

        private final float temperature;
        private final SplittableRandom random;

        /// @param temperature 0 takes the likeliest, 1 draws as the model says
        /// @param seed decides what is drawn
        TokenSampler(float temperature, long seed) {
            this.temperature = temperature;
            random = new SplittableRandom(seed);
        }

        /// @param logits by token
        /// @throws IllegalStateException when the highest logit is not finite
        int sample(MemorySegment logits) {
            int count = Math.toIntExact(logits.byteSize() / Float.BYTES);
            int likeliest = 0;
            for (int i = 1; i < count; i++) {
                if (logits.getAtIndex(JAVA_FLOAT, i) > logits.getAtIndex(JAVA_FLOAT, likeliest)) {
                    likeliest = i;
                }
            }
            float most = logits.getAtIndex(JAVA_FLOAT, likeliest);
            if (!Float.isFinite(most)) {
                throw new IllegalStateException("what the model says of the next token is not a number");
            }
            return temperature == 0 ? likeliest : sampleByWeight(logits, count, most);
        }

        private int sampleByWeight(MemorySegment logits, int count, float most) {
            double[] weights = new double[count];
            double sum = 0;
            for (int i = 0; i < count; i++) {
                weights[i] = Math.exp((logits.getAtIndex(JAVA_FLOAT, i) - most) / temperature);
                sum += weights[i];
            }
            double left = random.nextDouble() * sum;
            for (int i = 0; i < count; i++) {
                left -= weights[i];
                if (left < 0) {
                    return i;
                }
            }
            return count - 1;
        }
    }
}
