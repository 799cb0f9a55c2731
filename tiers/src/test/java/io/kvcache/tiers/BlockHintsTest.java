package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TtlQueue.ChainSuffixes;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Effect of hints on blocks in a store whose policy learns, and its counters.
final class BlockHintsTest {

    /// Blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 256, Dtype.BF16));

    /// Blocks of 32 bytes, of which nothing is put.
    private static final Namespace SMALL = Namespace.of("small", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    private static final Namespace THINGS = Namespace.objects("things", "t");

    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    private final ManualClock clock = new ManualClock();
    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .policy(PolicyKind.IMPORTANCE)
            .clock(clock)
            .failOnLeak(true)
            .build();

    BlockHintsTest() {
        cache.register(SPACE);
        cache.register(SMALL);
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    private static BlockChain chain(Namespace namespace, int seed, int blocks) {
        return BlockChain.of(
                namespace,
                IntStream.range(0, blocks * namespace.blockTokens())
                        .map(i -> seed * 1_000_000 + i)
                        .toArray());
    }

    private BlockChain put(int seed, int blocks) {
        return put(cache, seed, blocks);
    }

    private static BlockChain put(TieredKvCache cache, int seed, int blocks) {
        BlockChain chain = chain(SPACE, seed, blocks);
        for (int index = 0; index < blocks; index++) {
            try (var writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.seal();
            }
        }
        return chain;
    }

    private static RequestLabel first(int session) {
        return new RequestLabel(RequestKind.CHAT, session, 1, false);
    }

    private static Hint turn(BlockChain chain, int turn, boolean last) {
        return new Hint.Label(chain, 2, new RequestLabel(RequestKind.AGENT, 9, turn, last));
    }

    @Test
    void givenAPolicyThatDoesNotLearn_whenBlocksAreWeighedOrOnlyClassed_thenNotTaken() {
        try (TieredKvCache plain = TieredKvCache.builder()
                .hostBytes(64L << 20)
                .policy(PolicyKind.LRU)
                .build()) {
            plain.register(SPACE);
            BlockChain chain = put(plain, 1, 3);
            assertThat(plain.hint(new Hint.Weigh(chain, 1, List.of(0.5f, 1f)))).isFalse();
            assertThat(plain.hint(new Hint.Label(chain, 0, RequestLabel.of(RequestKind.AGENT))))
                    .isFalse();
            assertThat(plain.match(chain).blocks()).isEqualTo(3);
        }
    }

    @Test
    void givenBlocksThatAreHere_whenLabelledAndWeighed_thenTakenAndCounted() {
        BlockChain chain = put(1, 8);
        assertThat(cache.hint(turn(chain, 1, false))).isTrue();
        assertThat(cache.hint(new Hint.Weigh(chain, 5, List.of(1f, 0.5f, 0f)))).isTrue();
        assertThat(cache.hint(new Hint.Weigh(chain(SPACE, 2, 1), 0, List.of(1f))))
                .as("not here")
                .isFalse();
        HintStats stats = cache.hintStats();
        assertThat(stats.taken()).isEqualTo(2);
        assertThat(stats.notTaken()).isEqualTo(1);
        assertThat(stats.blocksLabelled()).isEqualTo(6);
        assertThat(stats.blocksWeighed()).isEqualTo(3);
        assertThat(stats.sessions()).isEqualTo(1);
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        assertThat(registry.get("kv.hints")
                        .tag("taken", "yes")
                        .functionCounter()
                        .count())
                .isEqualTo(2);
        assertThat(registry.get("kv.hints.said")
                        .tag("what", "weight")
                        .functionCounter()
                        .count())
                .isEqualTo(3);
        assertThat(registry.get("kv.hints.sessions").gauge().value()).isEqualTo(1);
        cache.hint(turn(chain, 2, true));
        assertThat(cache.hintStats().sessions()).as("its last turn").isZero();
    }

    @Test
    void givenLeavesOfLikeReuse_whenRoomIsNeeded_thenThoseThatMatterLittleGoFirst() {
        List<BlockChain> chains =
                IntStream.range(0, 64).mapToObj(seed -> put(seed, 1)).toList();
        for (int seed = 0; seed < 64; seed += 2) {
            cache.hint(new Hint.Weigh(chains.get(63 - seed), 0, List.of(0.1f)));
        }
        for (int fresh = 0; fresh < 24; fresh++) {
            put(1000 + fresh, 1);
        }
        long important = IntStream.range(0, 64)
                .filter(seed -> seed % 2 == 0 && cache.match(chains.get(seed)).blocks() == 1)
                .count();
        assertThat(important).isGreaterThan(24);
    }

    @Test
    void givenATimeToLive_whenItIsOver_thenItsBlocksAreVictimsAndCounted() {
        BlockChain chain = put(1, 20);
        assertThat(cache.hint(new Hint.Expire(chain, 4, Duration.ofNanos(MINUTE))))
                .isTrue();
        assertThat(cache.hintStats().blocksWaiting()).isEqualTo(16);
        clock.sleep(MINUTE);
        HintStats over = cache.hintStats();
        assertThat(over.blocksWaiting()).isZero();
        assertThat(over.blocksExpired()).isEqualTo(16);
        BlockChain other = put(2, 60);
        assertThat(cache.match(chain).blocks()).isEqualTo(4);
        assertThat(cache.match(other).blocks()).isEqualTo(60);
    }

    @Test
    void givenMoreTimesThanAShareMayHave_whenAsked_thenNotTaken() {
        BlockChain large = chain(SMALL, 1, ChainSuffixes.MAX_BLOCKS);
        assertThat(cache.hint(new Hint.Expire(large, 1, Duration.ofNanos(MINUTE))))
                .isTrue();
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 2, 2), 0, Duration.ofNanos(MINUTE))))
                .isFalse();
        assertThat(cache.hint(new Hint.Expire(large, 0, Duration.ofNanos(MINUTE))))
                .as("in place of the first")
                .isTrue();
        clock.sleep(MINUTE);
        assertThat(cache.hintStats().blocksWaiting()).isZero();
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 2, 2), 0, Duration.ofNanos(Long.MAX_VALUE))))
                .isTrue();
        clock.sleep(TimeUnit.DAYS.toNanos(30));
        assertThat(cache.hintStats().blocksWaiting()).as("for ever ends too").isZero();
    }

    @Test
    void givenATimeThatIsOver_whenAnObjectNeedsRoom_thenItsBlocksGoFirst() {
        cache.register(THINGS);
        BlockChain other = put(2, 40);
        BlockChain chain = put(1, 20);
        assertThat(cache.hint(new Hint.Expire(chain, 0, Duration.ofNanos(MINUTE))))
                .isTrue();
        clock.sleep(MINUTE);
        for (byte number = 0; number < 12; number++) {
            try (var writer = cache.putObject(THINGS, new byte[] {number}, (1 << 20) - 1, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.seal();
            }
        }
        assertThat(cache.match(other).blocks()).isEqualTo(40);
        assertThat(cache.match(chain).blocks()).as("beyond the four free ones").isEqualTo(12);
    }

    @Test
    void givenTimesThatAreOver_whenNobodyNeededRoomSince_thenTheyTakeNoPlace() {
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 1, ChainSuffixes.MAX_BLOCKS), 0, Duration.ofNanos(MINUTE))))
                .isTrue();
        clock.sleep(MINUTE);
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 2, 2), 0, Duration.ofNanos(MINUTE))))
                .isTrue();
    }

    @Test
    void givenHintsOfABlockEach_whenVeryManyAreGiven_thenTheyCountAsEightBlocks() {
        int most = ChainSuffixes.MAX_BLOCKS / 8;
        for (int seed = 0; seed < most; seed++) {
            assertThat(cache.hint(new Hint.Expire(chain(SMALL, seed, 1), 0, Duration.ofNanos(MINUTE))))
                    .isTrue();
            cache.hint(new Hint.Label(chain(SMALL, seed, 1), 1, first(seed + 1)));
        }
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, most, 1), 0, Duration.ofNanos(MINUTE))))
                .isFalse();
        cache.hint(new Hint.Label(chain(SMALL, most, 1), 1, first(most + 1)));
        HintStats stats = cache.hintStats();
        assertThat(stats.blocksWaiting()).isEqualTo(most);
        assertThat(stats.sessions()).isEqualTo(most);
        clock.sleep(MINUTE);
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 1, ChainSuffixes.MAX_BLOCKS), 0, Duration.ofNanos(MINUTE))))
                .as("all of it is given back")
                .isTrue();
    }

    @Test
    void givenMoreSessionsThanAreKnown_whenLabelled_thenTheFirstAreForgotten() {
        BlockChain chain = chain(SMALL, 1, 4000);
        for (int session = 1; session <= 100; session++) {
            cache.hint(new Hint.Label(chain, 4000, new RequestLabel(RequestKind.CHAT, session, 1, false)));
        }
        assertThat(cache.hintStats().sessions()).as("of 1,024 blocks each").isEqualTo(64);
    }

    @Test
    void givenASession_whenAnEarlierTurnIsLabelledLate_thenNothingIsLetGo() {
        BlockChain later = put(1, 10);
        cache.hint(turn(later, 3, false));
        cache.hint(turn(put(2, 10), 2, false));
        cache.hint(turn(later.prefix(9), 3, false));
        assertThat(cache.hintStats().blocksLeft()).isZero();
        cache.hint(turn(later.prefix(8), 4, false));
        assertThat(cache.hintStats().blocksLeft()).as("what is here beyond").isZero();
    }

    @Test
    void givenNoWeights_whenWeighed_thenNothingIsSaid() {
        BlockChain chain = put(1, 2);
        assertThat(cache.hint(new Hint.Weigh(chain, 2, Collections.emptyList())))
                .isFalse();
    }

    @Test
    void givenTimesAndSessions_whenTheirNamespaceGetsAShareOfItsOwn_thenTheyAreNobodyElsesCharge() {
        Namespace other = Namespace.of("other", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));
        cache.register(other);
        BlockChain large = chain(SMALL, 1, ChainSuffixes.MAX_BLOCKS);
        assertThat(cache.hint(new Hint.Expire(large, 0, Duration.ofNanos(MINUTE))))
                .isTrue();
        cache.hint(new Hint.Label(large, 1, first(1)));
        cache.setWeight(SMALL, 2);
        assertThat(cache.hint(new Hint.Expire(chain(SMALL, 2, 1), 0, Duration.ofNanos(MINUTE))))
                .as("its own is full")
                .isFalse();
        cache.hint(new Hint.Label(chain(SMALL, 3, 1), 1, first(2)));
        assertThat(cache.hint(new Hint.Expire(chain(other, 1, ChainSuffixes.MAX_BLOCKS), 0, Duration.ofNanos(MINUTE))))
                .isTrue();
        assertThat(cache.hintStats().sessions()).isEqualTo(2);
        cache.hint(new Hint.Label(large, 1, new RequestLabel(RequestKind.CHAT, 1, 2, true)));
        assertThat(cache.hintStats().sessions()).as("the first went along").isEqualTo(1);
    }
}
