package io.kvcache.engines.llamacpp;

import io.kvcache.engines.generator.EqualityContract;
import io.kvcache.engines.generator.UncachedAnswer;

final class EqualityTest extends EqualityContract<LlamaModel> {

    EqualityTest() {
        super(TestModels.small());
    }

    @Override
    protected UncachedAnswer plainly(int[] prompt, int count) {
        return TestModels.plainly(TestModels.small(), prompt, count);
    }
}
