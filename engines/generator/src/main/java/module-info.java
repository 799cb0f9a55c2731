/// What engines share that keep the KV cache of their prompts in KVCache.
@SuppressWarnings("requires-automatic") // Micrometer has no descriptor.
module io.kvcache.engines.generator {
    requires transitive io.kvcache.core;
    requires static micrometer.core;

    exports io.kvcache.engines.generator;
}
