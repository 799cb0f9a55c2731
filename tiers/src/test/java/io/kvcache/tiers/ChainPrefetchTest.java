package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Blocks of chains that are prefetched from a disk.
@Timeout(120)
final class ChainPrefetchTest {

    /// Blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 256, Dtype.BF16));

    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);
    private static final long MIB = 1L << 20;

    @TempDir
    private Path folder;

    private TieredKvCache cache = TieredKvCache.builder().hostBytes(32 * MIB).build();

    /// Opens a store of 64 blocks, over a disk.
    @BeforeEach
    void open() {
        cache.close();
        cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 600 * MIB)
                .prefetch(true)
                .build();
        cache.register(SPACE);
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * SPACE.blockTokens())
                        .map(i -> seed * 1_000_000 + i)
                        .toArray());
    }

    /// Puts and writes.
    private BlockChain put(int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        for (int index = 0; index < blocks; index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(PATIENCE))) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.segment().set(ValueLayout.JAVA_LONG, 0, chain.keyLo(index));
                writer.seal();
            }
        }
        assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        return chain;
    }

    /// By uses of one block, so that what has been unused since is no more than a guess is.
    private void passTime() {
        BlockChain chain = put(9, 1);
        for (int use = 0; use < 500; use++) {
            assertThat(read(chain, 0)).isEqualTo(1);
        }
    }

    private static void await(BooleanSupplier reached) {
        long end = System.nanoTime() + PATIENCE;
        while (!reached.getAsBoolean() && System.nanoTime() < end) {
            Pause.briefly();
        }
        assertThat(reached.getAsBoolean()).isTrue();
    }

    private int read(BlockChain chain, long timeoutNanos) {
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(timeoutNanos))) {
            int ready = table.await(chain.length(), Duration.ofNanos(timeoutNanos));
            for (int index = 0; index < ready; index++) {
                assertThat(table.segment(index).get(ValueLayout.JAVA_LONG, 0)).isEqualTo(chain.keyLo(index));
            }
            return ready;
        }
    }

    @Test
    void givenAChainOnDisk_whenMatched_thenItsBlocksComeInTheirOrderAndAreThereWhenAcquired() {
        BlockChain chain = put(1, 4);
        put(2, 64);
        passTime();
        assertThat(cache.match(chain).diskBlocks()).isEqualTo(4);
        await(() -> cache.match(chain).hostBlocks() == 4);
        assertThat(cache.prefetchStats().begun()).isEqualTo(4);
        assertThat(read(chain, 0)).isEqualTo(4);
        assertThat(cache.prefetchStats().used()).isEqualTo(4);
    }

    @Test
    void givenAChainThatWasLongerBefore_whenItsBeginningIsAcquired_thenWhatFollowedComes() {
        BlockChain chain = put(1, 6);
        put(2, 64);
        passTime();
        assertThat(read(chain.prefix(3), PATIENCE)).isEqualTo(3);
        await(() -> cache.match(chain, KvCache.NO_WAIT).hostBlocks() == 6);
        assertThat(cache.prefetchStats().begun()).isEqualTo(3);
        assertThat(read(chain, 0)).isEqualTo(6);
    }

    @Test
    void givenAChainWhoseEndIsOver_whenItsBeginningIsAcquired_thenNothingComesBehindIt() {
        BlockChain chain = put(1, 6);
        cache.hint(new Hint.Forget(chain, 3));
        put(2, 64);
        passTime();
        assertThat(read(chain.prefix(3), PATIENCE)).isEqualTo(3);
        assertThat(cache.prefetchStats().begun()).isZero();
    }

    @Test
    void givenAnEndWhoseTimeIsOver_whenALoadNeedsRoom_thenThatGoesFirst() {
        BlockChain wanted = put(1, 20);
        put(2, 44);
        BlockChain over = put(3, 20);
        assertThat(cache.hint(new Hint.Expire(over, 0, Duration.ZERO))).isTrue();
        assertThat(read(wanted, PATIENCE)).isEqualTo(20);
        assertThat(cache.match(over, KvCache.NO_WAIT).hostBlocks())
                .as("but for what was free, though it was used last")
                .isLessThan(10);
    }
}
