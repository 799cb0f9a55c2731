package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.tiers.BlockWrites.BulkPut;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class TieredPutAllTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
    private static final long TIMEOUT = 1_000_000_000;

    /// Frees one pinned block each time that nine tenths of the time-out have passed.
    private static final class ReleasingClock implements Clock {
        private final Deque<BlockTable> tables = new ArrayDeque<>();
        private long now;
        private long lastRelease;

        @Override
        public long nanos() {
            return now;
        }

        @Override
        public void sleep(long nanos) {
            now += nanos;
            if (now - lastRelease >= TIMEOUT / 10 * 9 && !tables.isEmpty()) {
                lastRelease = now;
                tables.pop().close();
            }
        }

        @Override
        public void await(Object monitor, long nanos) {
            sleep(nanos);
        }
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE, IntStream.range(0, blocks * 16).map(i -> seed * 1000 + i).toArray());
    }

    @Test
    void givenEveryBlockHasToWait_whenPutAll_thenTheTimeoutIsForAllTogether() {
        ReleasingClock clock = new ReleasingClock();
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .clock(clock)
                .build()) {
            cache.register(SPACE);
            for (int seed = 1; seed <= 32; seed++) {
                try (BlockWriter writer = cache.put(chain(seed, 1), 0, 0, KvCache.NO_WAIT)) {
                    writer.seal();
                }
                clock.tables.add(cache.acquire(chain(seed, 1)));
            }
            MemorySegment block = MemorySegment.ofArray(new byte[1 << 20]);
            assertThat(cache.putAll(chain(100, 3), 0, Collections.nCopies(3, block), Duration.ofNanos(TIMEOUT)))
                    .isEqualTo(new PutSummary(1, 0, PutOutcome.NO_ROOM));
            assertThat(clock.now).isEqualTo(TIMEOUT);
            clock.tables.forEach(BlockTable::close);
        }
    }

    @Test
    void givenTheLastBlockGoesBeforeTheNextComes_whenPutAll_thenBegunAgainOnce() {
        BlockChain chain = chain(1, 3);
        List<MemorySegment> blocks = Collections.nCopies(3, MemorySegment.ofArray(new byte[1 << 20]));
        for (int losses = 1; losses <= 2; losses++) {
            try (TieredKvCache cache = TieredKvCache.builder()
                    .hostBytes(32 << 20)
                    .prefaultInBackground(false)
                    .build()) {
                cache.register(SPACE);
                AtomicInteger left = new AtomicInteger(losses);
                PutSummary put = new BulkPut(blocks, i -> {
                            if (i == 2 && left.getAndDecrement() > 0) {
                                cache.drop(chain, 1);
                            }
                            return cache.put(chain, i, 0, KvCache.NO_WAIT);
                        })
                        .put();
                assertThat(put)
                        .isEqualTo(
                                losses == 1
                                        ? new PutSummary(2, 1, PutOutcome.RESERVED)
                                        : new PutSummary(1, 1, PutOutcome.NO_PARENT));
            }
        }
    }
}
