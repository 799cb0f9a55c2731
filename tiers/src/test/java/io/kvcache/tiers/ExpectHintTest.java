package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Hints that say when a request will come, in a store that sees one new block a second and holds 32.
final class ExpectHintTest {

    /// Blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 256, Dtype.BF16));

    private static final int FIT = 32;
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final ManualClock clock = new ManualClock();

    private TieredKvCache store(PolicyKind policy) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes((long) FIT << 20)
                .policy(policy)
                .clock(clock)
                .failOnLeak(true)
                .build();
        cache.register(SPACE);
        return cache;
    }

    private void fill(TieredKvCache cache, int first, int blocks) {
        for (int i = 0; i < blocks; i++) {
            try (var writer = cache.put(chain(first + i), 0, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.seal();
            }
            clock.sleep(SECOND);
        }
    }

    private static BlockChain chain(int seed) {
        int[] tokens = new int[256];
        Arrays.fill(tokens, seed);
        return BlockChain.of(SPACE, tokens);
    }

    @ParameterizedTest
    @EnumSource(
            value = PolicyKind.class,
            names = {"LRU", "IMPORTANCE"})
    void givenARequestThatComesSoon_whenHinted_thenItsBlockStays(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            fill(cache, 0, 2 * FIT);
            BlockChain next = chain(FIT); // that goes next
            assertThat(cache.hint(new Hint.Expect(next, Duration.ofNanos(10 * SECOND))))
                    .isTrue();
            fill(cache, 1000, 10);
            assertThat(cache.match(next).blocks()).isEqualTo(1);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = PolicyKind.class,
            names = {"LRU", "IMPORTANCE"})
    void givenARequestThatComesTomorrow_whenHinted_thenItTakesNoRoomFromOthers(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            fill(cache, 0, 2 * FIT);
            BlockChain next = chain(FIT);
            assertThat(cache.hint(new Hint.Expect(next, Duration.ofNanos(86_400 * SECOND))))
                    .isFalse();
            fill(cache, 1000, 10);
            assertThat(cache.match(next).blocks()).isZero();
            assertThat(cache.hint(new Hint.Expect(chain(1009), Duration.ZERO)))
                    .as("as soon as possible")
                    .isTrue();
        }
    }

    @Test
    void givenAStoreWithRoom_whenARequestIsHintedThatComesTomorrow_thenItIsTaken() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes((3L * FIT) << 20)
                .clock(clock)
                .failOnLeak(true)
                .build()) {
            cache.register(SPACE);
            fill(cache, 0, FIT);
            assertThat(cache.hint(new Hint.Expect(chain(1), Duration.ofNanos(86_400 * SECOND))))
                    .isTrue();
        }
    }
}
