package io.kvcache.engines.llamacpp;

import io.kvcache.engines.generator.EqualityContract;
import io.kvcache.engines.generator.UncachedAnswer;

final class LlamaEqualityTest extends EqualityContract<LlamaModel> {

    LlamaEqualityTest() {
        super(LlamaTestModels.small());
    }

    @Override
    protected UncachedAnswer generateUncached(int[] prompt, int count) {
        return LlamaTestModels.generateUncached(LlamaTestModels.small(), prompt, count);
    }
}
