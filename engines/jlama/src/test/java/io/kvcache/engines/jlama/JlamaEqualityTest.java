package io.kvcache.engines.jlama;

import io.kvcache.engines.generator.EqualityContract;
import io.kvcache.engines.generator.UncachedAnswer;

final class JlamaEqualityTest extends EqualityContract<JlamaModel> {

    JlamaEqualityTest() {
        super(JlamaTestModels.small());
    }

    @Override
    protected UncachedAnswer generateUncached(int[] prompt, int count) {
        return JlamaTestModels.generateUncached(JlamaTestModels.small(), prompt, count);
    }
}
