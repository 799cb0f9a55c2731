package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;

/// A small random model over a store of its own, for tests of what stands on the generator.
public record CachedLlama(KvCache cache, JlamaModel model, PrefixCachedGenerator<JlamaModel> generator)
        implements AutoCloseable {

    private static final Duration PATIENCE = Duration.ofSeconds(60);

    /// Makes the model and an empty store.
    ///
    /// @param folder where the model is written
    public static CachedLlama open(Path folder, int blockTokens) throws IOException {
        KvCache cache = TieredKvCache.builder().hostBytes(64L << 20).build();
        JlamaModel model = JlamaModel.load(RandomLlama.SMALL.write(folder), JlamaOptions.defaults());
        GeneratorOptions options = GeneratorOptions.DEFAULTS.withBlockTokens(blockTokens);
        return new CachedLlama(cache, model, new PrefixCachedGenerator<>(model, cache, options));
    }

    /// Waits until the store has all that was computed.
    public void awaitStored() throws InterruptedException {
        assertThat(generator.awaitStored(PATIENCE)).isTrue();
    }

    /// Empties the store.
    public void dropAll() throws InterruptedException {
        awaitStored();
        cache.drop(generator.namespace());
    }

    @Override
    public void close() {
        generator.close();
        model.close();
        cache.close();
    }
}
