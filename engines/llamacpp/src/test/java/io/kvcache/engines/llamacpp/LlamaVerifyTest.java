package io.kvcache.engines.llamacpp;

import io.kvcache.engines.generator.UncachedAnswer;
import io.kvcache.engines.generator.VerifyContract;
import org.junit.jupiter.api.Tag;

@Tag("slow")
final class LlamaVerifyTest extends VerifyContract<LlamaModel> {

    /// Of the head of a state, and of what comes before the rows of a layer's keys, or of its values.
    private static final int HEAD_BYTES = 12;

    private static final int TOKENS = 16;

    LlamaVerifyTest() {
        super(LlamaTestModels.small());
    }

    @Override
    protected UncachedAnswer generateUncached(int[] start, int count) {
        return LlamaTestModels.generateUncached(LlamaTestModels.small(), start, count);
    }

    /// A value of 16 bits from 2 to 4 has one of these bytes above.
    @Override
    protected int wrongByte(byte[] block) {
        LlamaStateLayout layout = LlamaTestModels.small().layout();
        int at = HEAD_BYTES + 8 * TOKENS;
        for (LlamaStateLayout.Layer layer : layout.layers()) {
            at += HEAD_BYTES + Math.toIntExact(layer.keyBytes()) * TOKENS;
        }
        LlamaStateLayout.Layer first = layout.layers().getFirst();
        int end = at + HEAD_BYTES + Math.toIntExact(first.valueBytes()) * first.valueElements() * TOKENS;
        for (at += HEAD_BYTES; at < end; at += Short.BYTES) {
            if ((block[at + 1] & 0x7c) == 0x40) {
                return at + 1;
            }
        }
        throw new AssertionError("no value of the first layer is between 2 and 4");
    }

    @Override
    protected byte wrongBit() {
        return 0x20;
    }
}
