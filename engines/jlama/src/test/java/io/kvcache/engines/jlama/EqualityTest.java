package io.kvcache.engines.jlama;

import io.kvcache.engines.generator.EqualityContract;
import io.kvcache.engines.generator.UncachedAnswer;

final class EqualityTest extends EqualityContract<JlamaModel> {

    EqualityTest() {
        super(TestModels.small());
    }

    @Override
    protected UncachedAnswer plainly(int[] prompt, int count) {
        return TestModels.plainly(TestModels.small(), prompt, count);
    }
}
