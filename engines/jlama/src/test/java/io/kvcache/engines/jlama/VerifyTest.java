package io.kvcache.engines.jlama;

import io.kvcache.engines.generator.UncachedAnswer;
import io.kvcache.engines.generator.VerifyContract;

final class VerifyTest extends VerifyContract<JlamaModel> {

    VerifyTest() {
        super(TestModels.small());
    }

    @Override
    protected UncachedAnswer plainly(int[] start, int count) {
        return TestModels.plainly(TestModels.small(), start, count);
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
