package io.kvcache.engines.generator;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// For random prompts, the store changes no token: by 24 prompts over four ways and two lengths of
/// blocks, by 96 in `./kvcache test --full`, or by as many as `-Dkvcache.engines.prompts=N` says.
@Tag("slow")
public abstract class EqualityContract<M extends EngineModel> {

    private static final int PROMPTS =
            Integer.getInteger("kvcache.engines.prompts", Boolean.getBoolean("kvcache.full") ? 96 : 24);
    private static final int EACH = Math.max(2, PROMPTS / 8);
    private static final int TOKENS = 12;
    private static final int MAX_PROMPT_TOKENS = 200;
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long HOST_BYTES = 64L << 20;

    private final M model;
    private final HitDistribution hitDistribution = new HitDistribution();

    @TempDir
    private Path folder;

    /// @param model of random weights, which the subclass keeps
    protected EqualityContract(M model) {
        this.model = model;
    }

    /// What the engine says by itself.
    protected abstract UncachedAnswer generateUncached(int[] prompt, int count);

    /// How much of the prompts came from the store.
    private static final class HitDistribution {
        private int nothing;
        private int something;
        private int everything;

        void add(int cached, int usable) {
            if (cached == 0) {
                nothing++;
            } else if (cached < usable) {
                something++;
            } else {
                everything++;
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 64})
    void givenAnEmbeddedStore_whenPromptsShareAndDiverge_thenNoTokenDiffers(int blockTokens) throws Exception {
        try (KvCache cache = TieredKvCache.builder().hostBytes(HOST_BYTES).build()) {
            askAll(cache, blockTokens, () -> {});
        }
        assertThat(hitDistribution.everything).isPositive();
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 64})
    void givenAFullStore_whenItEvicts_thenNoTokenDiffers(int blockTokens) throws Exception {
        try (KvCache cache = TieredKvCache.builder().hostBytes(HOST_BYTES).build()) {
            EvictionLoad evictionLoad = new EvictionLoad(
                    cache,
                    model.namespace(blockTokens, "", "").parts().getFirst().shape());
            askAll(cache, blockTokens, evictionLoad::evictSome);
            assertThat(cache.stats().removals().evicted()).isPositive();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 64})
    void givenADisk_whenTheStoreIsOpenedAgain_thenNoTokenDiffers(int blockTokens) throws Exception {
        int[] base = RandomPrompts.random(blockTokens, MAX_PROMPT_TOKENS);
        try (TieredKvCache cache = onDisk();
                PrefixCachedGenerator<M> generator = generator(cache, blockTokens)) {
            ask(generator, base);
            assertThat(generator.awaitStored(PATIENCE)).isTrue();
            assertThat(cache.flush(PATIENCE)).isTrue();
        }
        try (TieredKvCache cache = onDisk();
                PrefixCachedGenerator<M> generator = generator(cache, blockTokens)) {
            RecoveredBlocks.await(cache, BlockChain.of(generator.namespace(), base), MAX_PROMPT_TOKENS / blockTokens);
            SplittableRandom random = new SplittableRandom(blockTokens);
            for (int i = 0; i < EACH; i++) {
                int shared = i == 0 ? MAX_PROMPT_TOKENS : random.nextInt(MAX_PROMPT_TOKENS + 1);
                int[] prompt = RandomPrompts.diverging(base, shared, 100 + i, MAX_PROMPT_TOKENS);
                Generation made = ask(generator, prompt);
                assertThat(made.cachedTokens())
                        .isEqualTo(Math.min(shared, MAX_PROMPT_TOKENS - 1) / blockTokens * blockTokens);
                assertThat(generator.awaitStored(PATIENCE)).isTrue();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 64})
    void givenAServer_whenTwoGeneratorsShareIt_thenTheSecondHasTheFirstsAndNoTokenDiffers(int blockTokens)
            throws Exception {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        try (TieredKvCache served =
                        TieredKvCache.builder().hostBytes(HOST_BYTES).build();
                TcpEndpoint endpoint = TcpEndpoint.open(served, any, EndpointOptions.DEFAULTS)) {
            String address = "127.0.0.1:" + endpoint.address().getPort();
            int[] base = RandomPrompts.random(blockTokens, MAX_PROMPT_TOKENS);
            try (KvCache first = connect(address);
                    PrefixCachedGenerator<M> generator = generator(first, blockTokens)) {
                ask(generator, base);
                assertThat(generator.awaitStored(PATIENCE)).isTrue();
            }
            try (KvCache second = connect(address);
                    PrefixCachedGenerator<M> generator = generator(second, blockTokens)) {
                assertThat(ask(generator, base).cachedTokens())
                        .isEqualTo((MAX_PROMPT_TOKENS - 1) / blockTokens * blockTokens);
            }
            try (KvCache third = connect(address)) {
                askAll(third, blockTokens, () -> {});
            }
        }
    }

    /// Prompts of which many begin as one before them did, each asked of the engine alone as well.
    private void askAll(KvCache cache, int blockTokens, Runnable between) throws InterruptedException {
        SplittableRandom random = new SplittableRandom(blockTokens);
        try (PrefixCachedGenerator<M> generator = generator(cache, blockTokens)) {
            int[] before = RandomPrompts.random(1, MAX_PROMPT_TOKENS);
            for (int i = 0; i < EACH; i++) {
                boolean again = i % 3 == 2 || i == EACH - 1;
                int length = again ? before.length : random.nextInt(blockTokens + 1, MAX_PROMPT_TOKENS + 1);
                int shared = again ? length : random.nextInt(Math.min(length, before.length));
                int[] prompt = RandomPrompts.diverging(before, shared, i, length);
                int usable = (length - 1) / blockTokens;
                BlockChain chain = BlockChain.of(generator.namespace(), prompt);
                int known = cache.match(chain.prefix(usable)).blocks();
                Generation made = ask(generator, prompt);
                assertThat(made.cachedTokens()).isEqualTo(known * blockTokens);
                assertThat(generator.awaitStored(PATIENCE)).isTrue();
                assertThat(cache.match(chain).blocks()).isEqualTo(chain.length());
                hitDistribution.add(known, usable);
                // The next one may go on from the answer, as the next question of a chat does.
                before = i % 2 == 0 ? prompt : RandomPrompts.concatenate(prompt, made.tokens());
                between.run();
            }
        }
        assertThat(hitDistribution.nothing + hitDistribution.something + hitDistribution.everything)
                .isEqualTo(EACH);
    }

    private Generation ask(PrefixCachedGenerator<M> generator, int[] prompt) {
        Generation made = generator.generate(GenerationRequest.greedy(prompt, TOKENS), TokenListener.NONE);
        UncachedAnswer plain = generateUncached(prompt, TOKENS);
        assertThat(made.tokens())
                .as("of %d tokens, %d cached", prompt.length, made.cachedTokens())
                .isEqualTo(plain.tokens());
        if (model.tolerance() == 0) {
            assertThat(made.firstLogits()).isEqualTo(plain.logits());
        } else {
            IntStream.range(0, plain.logits().length)
                    .forEach(i -> assertThat((double) made.firstLogits()[i])
                            .isCloseTo(plain.logits()[i], Offset.offset(1e-3)));
        }
        return made;
    }

    private PrefixCachedGenerator<M> generator(KvCache cache, int blockTokens) {
        return new PrefixCachedGenerator<>(
                model,
                cache,
                GeneratorOptions.DEFAULTS.withBlockTokens(blockTokens).withLoadTimeout(PATIENCE));
    }

    private static KvCache connect(String address) {
        return RemoteKvCache.builder(address).requestTimeout(PATIENCE).connect();
    }

    private TieredKvCache onDisk() throws IOException {
        return TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .disk(folder, 10 * HOST_BYTES)
                .admission(AdmissionKind.ALWAYS)
                .build();
    }

    /// Puts blocks of somebody else, so that the least recently used ones have to go.
    private static final class EvictionLoad {
        private static final int BLOCKS = 64;

        private final KvCache cache;
        private final Namespace namespace;
        private final long blockBytes;
        private int chains;

        EvictionLoad(KvCache cache, BlockShape shape) {
            this.cache = cache;
            namespace = Namespace.of("somebody else", shape);
            blockBytes = shape.bytes();
            cache.register(namespace);
        }

        /// All that the store can hold but a few blocks, so that of what was there the last used remains.
        void evictSome() {
            long room = HOST_BYTES / blockBytes - 5;
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment block = arena.allocate(blockBytes);
                for (long left = room; left > 0; left -= BLOCKS) {
                    int blocks = (int) Math.min(left, BLOCKS);
                    int[] tokens = RandomPrompts.random(1_000_000 + chains++, blocks * namespace.blockTokens());
                    cache.putAll(
                            BlockChain.of(namespace, tokens), 0, Collections.nCopies(blocks, block), KvCache.NO_WAIT);
                }
            }
        }
    }
}
