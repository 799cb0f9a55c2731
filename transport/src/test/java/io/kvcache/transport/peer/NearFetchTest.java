package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.peer.BlockFetcher.SingleFlight;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What happens while the cache below is asked, one thing after the other.
@Timeout(180)
final class NearFetchTest {

    private static final Namespace SPACE = Namespace.of("held", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final long WAIT = TimeUnit.SECONDS.toNanos(60);
    private static final int BLOCKS = 100; // three groups

    private final TieredKvCache far = store();
    private final TieredKvCache near = store();
    private final GatedKvCache below = new GatedKvCache(far);

    /// Has a permit for each who begins to wait for another's answer.
    private final Semaphore waits = new Semaphore(0);

    private final NearKvCache cache = NearKvCache.over(near, below, dependencies());

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
    }

    /// Two fetch at a time, by the machine's clock.
    private NearKvCache.Dependencies dependencies() {
        PeerClock clock = new PeerClock() {
            @Override
            public long nanos() {
                return System.nanoTime();
            }

            @Override
            public void await(Object monitor, long untilNanos) throws InterruptedException {
                if (monitor instanceof SingleFlight) {
                    waits.release();
                }
                PeerClock.MACHINE.await(monitor, untilNanos);
            }

            @Override
            public void wake(Object monitor) {
                PeerClock.MACHINE.wake(monitor);
            }
        };
        return new NearKvCache.Dependencies(Executors.newFixedThreadPool(2), null, clock, Duration.ofMinutes(10));
    }

    @AfterEach
    void close() {
        below.answer();
        assertThat(far.stats().openTables()).isZero();
        cache.close();
    }

    private static BlockChain chain(int seed) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * BLOCKS).map(i -> seed * 1_000_000 + i).toArray());
    }

    /// A chain that the cache below has.
    private BlockChain had(int seed) {
        cache.register(SPACE);
        BlockChain chain = chain(seed);
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = far.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.seal();
            }
        }
        return chain;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenBlocksOnTheirWay_whenTheyAreDropped_thenTheyDoNotComeBack(boolean wholeNamespace) throws Exception {
        BlockChain chain = had(1);
        Consumer<BlockChain> drop = wholeNamespace ? of -> cache.drop(of.namespace()) : of -> cache.drop(of, 0);
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(WAIT))) {
            below.awaitRequest();
            drop.accept(chain);
            below.answer();
            assertThat(table.await(BLOCKS, Duration.ofNanos(WAIT))).isZero();
        }
        assertThat(near.match(chain).blocks()).as("what was dropped").isZero();

        had(1);
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(WAIT))) {
            assertThat(table.await(BLOCKS, Duration.ofNanos(WAIT)))
                    .as("what is put after it")
                    .isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenBlocksOnTheirWay_whenOthersAreDropped_thenTheyCome() throws Exception {
        BlockChain chain = had(1);
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(WAIT))) {
            below.awaitRequest();
            cache.drop(had(2), 0);
            below.answer();
            assertThat(table.await(BLOCKS, Duration.ofNanos(WAIT))).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenTwoWhoWantWhatNobodyHas_whenOneHasBeenTold_thenTheOtherDoesNotAsk() throws Exception {
        cache.register(SPACE);
        try (BlockTable first = cache.acquire(chain(9), 0, Duration.ofNanos(WAIT))) {
            below.awaitRequest();
            try (BlockTable second = cache.acquire(chain(9), 0, Duration.ofNanos(WAIT))) {
                assertThat(waits.tryAcquire(60, TimeUnit.SECONDS)).isTrue();
                below.answer();
                assertThat(first.await(1, Duration.ofNanos(WAIT))).isZero();
                assertThat(second.await(1, Duration.ofNanos(WAIT))).isZero();
            }
        }
        assertThat(below.requests()).isEqualTo(1);
    }

    @Test
    void givenFetchesThatAllWait_whenTheTimeOfAnotherIsOver_thenItsTableEnds() throws Exception {
        BlockChain chain = had(1);
        try (BlockTable first = cache.acquire(had(2), 0, Duration.ofNanos(WAIT));
                BlockTable second = cache.acquire(had(3), 0, Duration.ofNanos(WAIT))) {
            below.awaitRequest();
            below.awaitRequest();
            try (BlockTable third = cache.acquire(chain, 0, Duration.ofMillis(20))) {
                int ready =
                        third.onReady(1, Runnable::run).toCompletableFuture().get(30, TimeUnit.SECONDS);
                assertThat(ready).isZero();
                assertThat(third.endBlock()).isZero();
            }
            below.answer();
            assertThat(first.await(BLOCKS, Duration.ofNanos(WAIT))).isEqualTo(BLOCKS);
            assertThat(second.await(BLOCKS, Duration.ofNanos(WAIT))).isEqualTo(BLOCKS);
        }
    }
}
