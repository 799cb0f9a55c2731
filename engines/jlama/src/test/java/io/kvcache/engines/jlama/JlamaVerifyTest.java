package io.kvcache.engines.jlama;

import io.kvcache.engines.generator.UncachedAnswer;
import io.kvcache.engines.generator.VerifyContract;
import org.junit.jupiter.api.Tag;

@Tag("slow")
final class JlamaVerifyTest extends VerifyContract<JlamaModel> {

    JlamaVerifyTest() {
        super(JlamaTestModels.small());
    }

    @Override
    protected UncachedAnswer generateUncached(int[] start, int count) {
        return JlamaTestModels.generateUncached(JlamaTestModels.small(), start, count);
    }

    @Override
    protected int wrongByte(byte[] block) {
        int plane = block.length / (RandomLlama.SMALL.layers() * 2);
        for (int at = plane; at < 2 * plane; at += Float.BYTES) {
            if ((block[at + 3] & 0x7f) == 0x40) {
                return at + 3;
            }
        }
        throw new AssertionError("no value of the first layer is between 2 and 8");
    }

    @Override
    protected byte wrongBit() {
        return 0x04;
    }
}
