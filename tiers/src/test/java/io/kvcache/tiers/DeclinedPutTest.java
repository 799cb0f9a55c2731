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
import io.kvcache.core.policy.PolicyKind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// A store that thrashes: sessions that take turns, more than fit.
@Tag("slow")
final class DeclinedPutTest {

    private static final int SESSIONS = 40;
    private static final int BLOCKS = 16;
    private static final int ROUNDS = 120;
    private static final int CAPACITY = 320;

    /// Blocks of 4 KiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));

    private static TieredKvCache open(PolicyKind policy) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64L << 20)
                .records(CAPACITY)
                .policy(policy)
                .build();
        cache.register(SPACE);
        return cache;
    }

    private static BlockChain chain(int session) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, BLOCKS * 16)
                        .map(i -> i + session * 1_000_000)
                        .toArray());
    }

    /// Returns how many blocks were found in the second half of the rounds.
    private static int serve(TieredKvCache cache) {
        int found = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (int session = 0; session < SESSIONS; session++) {
                BlockChain chain = chain(session);
                try (BlockTable table = cache.acquire(chain)) {
                    found += round < ROUNDS / 2 ? 0 : table.readyBlocks();
                    put(cache, chain, table.readyBlocks());
                }
            }
        }
        return found;
    }

    private static void put(TieredKvCache cache, BlockChain chain, int from) {
        for (int index = from; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    assertThat(writer.outcome()).isEqualTo(PutOutcome.DECLINED);
                    assertThat(writer.outcome().allowsNextBlock()).isFalse();
                    return;
                }
                writer.seal();
            }
        }
    }

    @Test
    void givenMoreSessionsThanFit_whenTheyTakeTurns_thenSomeAreDeclinedAndOthersFound() {
        int lru;
        try (TieredKvCache cache = open(PolicyKind.LRU)) {
            lru = serve(cache);
            assertThat(cache.stats().puts().declined()).isZero();
        }
        try (TieredKvCache cache = open(PolicyKind.IMPORTANCE)) {
            int found = serve(cache);
            assertThat(lru).isLessThan(SESSIONS * BLOCKS);
            assertThat(found)
                    .as("of %d blocks asked for", SESSIONS * BLOCKS * ROUNDS / 2)
                    .isGreaterThan(SESSIONS * BLOCKS * ROUNDS / 2 / 10);
            assertThat(cache.stats().puts().declined()).isPositive();
            cache.validate();
        }
    }

    @Test
    void givenARunThatIsDeclined_whenPutAtOnce_thenTheSummarySaysSoAndAllIsAsBefore() {
        try (TieredKvCache cache = open(PolicyKind.IMPORTANCE);
                Arena arena = Arena.ofConfined()) {
            serve(cache);
            MemorySegment block = arena.allocate(4096);
            PutSummary summary = null;
            for (int session = 0;
                    session < SESSIONS && (summary == null || summary.last() != PutOutcome.DECLINED);
                    session++) {
                BlockChain chain = chain(session);
                int from = cache.match(chain).blocks();
                if (from < BLOCKS) {
                    summary = cache.putAll(chain, from, Collections.nCopies(BLOCKS - from, block), KvCache.NO_WAIT);
                    assertThat(cache.match(chain).blocks()).isEqualTo(from + summary.stored());
                }
            }
            assertThat(summary).isNotNull().extracting(PutSummary::last).isEqualTo(PutOutcome.DECLINED);
            cache.validate();
        }
    }
}
