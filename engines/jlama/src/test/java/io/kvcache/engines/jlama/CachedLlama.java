package io.kvcache.engines.jlama;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.CachedModel;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;

/// A small random model over a store of its own, for tests of what stands on the generator.
public record CachedLlama(KvCache cache, JlamaModel model, PrefixCachedGenerator<JlamaModel> generator)
        implements CachedModel<JlamaModel> {

    /// Makes the model and an empty store.
    ///
    /// @param folder where the model is written
    public static CachedLlama open(Path folder, int blockTokens) throws IOException {
        KvCache cache = TieredKvCache.builder().hostBytes(64L << 20).build();
        JlamaModel model = JlamaModel.load(RandomLlama.SMALL.write(folder), JlamaOptions.defaults());
        GeneratorOptions options = GeneratorOptions.DEFAULTS.withBlockTokens(blockTokens);
        return new CachedLlama(cache, model, new PrefixCachedGenerator<>(model, cache, options));
    }

    @Override
    public void close() {
        generator.close();
        model.close();
        cache.close();
    }
}
