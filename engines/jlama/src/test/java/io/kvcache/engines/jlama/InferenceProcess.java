package io.kvcache.engines.jlama;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.engines.generator.RecoveredBlocks;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;

/// An inference JVM of its own: loads a model, answers one prompt with what its store has, says how much
/// that was, makes its blocks durable if it can, and is gone without closing anything.
final class InferenceProcess {

    static final int LENGTH = 100;
    static final int TOKENS = 12;

    private static final int BLOCK_TOKENS = 16;

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long HOST_BYTES = 64L << 20;

    private InferenceProcess() {}

    /// Speaks once.
    ///
    /// @param arguments a model's folder, and `disk` with a folder, or `server` with an address; then how
    ///     many tokens of the prompt it has to wait for
    public static void main(String[] arguments) throws Exception {
        KvCache cache = arguments[1].equals("disk")
                ? TieredKvCache.builder()
                        .hostBytes(HOST_BYTES)
                        .disk(Path.of(arguments[2]), 10 * HOST_BYTES)
                        .admission(AdmissionKind.ALWAYS)
                        .build()
                : RemoteKvCache.builder(arguments[2]).requestTimeout(PATIENCE).connect();
        JlamaModel model = JlamaModel.load(Path.of(arguments[0]), JlamaOptions.defaults());
        PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(
                model,
                cache,
                GeneratorOptions.DEFAULTS.withBlockTokens(BLOCK_TOKENS).withLoadTimeout(PATIENCE));
        int[] prompt = RandomPrompts.random(77, LENGTH);
        RecoveredBlocks.await(
                cache, BlockChain.of(generator.namespace(), prompt), Integer.parseInt(arguments[3]) / BLOCK_TOKENS);
        Generation made = generator.generate(GenerationRequest.greedy(prompt, TOKENS), TokenListener.NONE);
        boolean stored = generator.awaitStored(PATIENCE);
        boolean durable = !arguments[1].equals("disk") || cache.flush(PATIENCE);
        System.out.println("cached " + made.cachedTokens() + ", said " + Arrays.toString(made.tokens()));
        System.out.flush();
        Runtime.getRuntime().halt(stored && durable ? 0 : 1);
    }
}
