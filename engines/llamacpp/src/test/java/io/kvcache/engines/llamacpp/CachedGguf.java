package io.kvcache.engines.llamacpp;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.CachedModel;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/// A small random model of llama.cpp over a store of its own, for tests of what stands on the generator.
public record CachedGguf(KvCache cache, LlamaModel model, PrefixCachedGenerator<LlamaModel> generator)
        implements CachedModel<LlamaModel> {

    /// Makes the model and an empty store; skips the test where the machine cannot load llama.cpp.
    ///
    /// @param folder where the model is written
    /// @param metadata of the file, put over the model's own
    public static CachedGguf open(Path folder, int blockTokens, Map<String, Object> metadata) throws IOException {
        NativeRequirements.assume();
        KvCache cache = TieredKvCache.builder().hostBytes(64L << 20).build();
        LlamaModel model = LlamaModel.load(
                LlamaTestModels.library(),
                RandomGguf.SMALL.write(folder.resolve("random.gguf"), metadata),
                LlamaTestModels.OPTIONS);
        GeneratorOptions options = GeneratorOptions.DEFAULTS.withBlockTokens(blockTokens);
        return new CachedGguf(cache, model, new PrefixCachedGenerator<>(model, cache, options));
    }

    @Override
    public void close() {
        generator.close();
        model.close();
        cache.close();
    }
}
