package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;

/// Chooses the next token from what a model says of every token.
///
/// **Threads.** One.
final class TokenSampler {

    private final float temperature;
    private final SplittableRandom random;

    /// @param temperature 0 takes the likeliest, 1 draws as the model says
    /// @param seed decides what is drawn
    TokenSampler(float temperature, long seed) {
        this.temperature = temperature;
        random = new SplittableRandom(seed);
    }

    /// @param logits by token
    /// @throws IllegalStateException when they are no numbers
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
