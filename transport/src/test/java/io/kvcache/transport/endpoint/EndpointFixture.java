package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/// A store, and endpoints that serve it without a network, by a clock that the test moves.
final class EndpointFixture {

    static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));

    static final EndpointOptions OPTIONS =
            EndpointOptions.DEFAULTS.withMaxLease(Duration.ofSeconds(10)).withHandshakeTimeout(Duration.ofSeconds(2));

    /// How long anything may take before a test gives up.
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    /// Between two looks, so that what is waited for has the processor.
    private static final long LOOK_NANOS = 1_000_000;

    private final AtomicLong nanos = new AtomicLong(1);
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .checkSegments(true)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();

    TieredKvCache store() {
        return store;
    }

    Endpoint open(EndpointOptions options) {
        return new Endpoint(store, options, nanos::get);
    }

    /// Returns once it is so.
    static void await(String what, BooleanSupplier so) {
        long start = System.nanoTime();
        while (!so.getAsBoolean()) {
            pollOnce(what, start);
        }
    }

    /// Before another look at what is waited for since a moment, unless that is too long ago.
    static void pollOnce(String what, long startNanos) {
        assertThat(System.nanoTime() - startNanos).as(what).isLessThan(PATIENCE.toNanos());
        LockSupport.parkNanos(LOOK_NANOS);
    }

    void advance(Duration time) {
        nanos.addAndGet(time.toNanos());
    }

    static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> seed * 100_000 + i).toArray());
    }

    /// Puts a chain into the store.
    BlockChain stored(int seed, int blocks) {
        store.register(SPACE);
        BlockChain chain = chain(seed, blocks);
        for (int index = 0; index < blocks; index++) {
            try (BlockWriter writer = store.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
        return chain;
    }

    /// For the end of a test.
    void requireNothingLeft() {
        assertThat(store.stats().openTables()).isZero();
        store.validate();
        store.close();
    }
}
