package io.kvcache.planner.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.trace.AdversarialTrace;
import io.kvcache.planner.trace.TraceRequest;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Hostile traffic of one tenant, and another that lies in all its hints: it announces what never comes,
/// again and again, pins all it can for ever, and labels, weighs and dates its blocks as suits it.
///
/// The store is the production one, of 2,048 blocks of 16 KiB; nine tenths are the honest tenant's by
/// weight.
@Tag("slow")
final class AdversarialTenantTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 1, 256, 16, Dtype.BF16);
    private static final long HOST_BYTES = 32L << 20;
    private static final int HONEST_WEIGHT = 18;
    private static final int LIAR_WEIGHT = 2;
    private static final int REQUESTS = 24_000;
    /// By then both have put more than there is room for.
    private static final int FULL = 2000;

    private static final Namespace HONEST = Namespace.of("honest", SHAPE);
    private static final Namespace LIAR = Namespace.of("liar", SHAPE);

    /// What the honest tenant got.
    private record Outcome(double hitRatio, double smallestPartOfShare) {}

    private static Outcome run(PolicyKind policy, boolean lies) {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .policy(policy)
                .failOnLeak(true)
                .build()) {
            cache.register(HONEST);
            cache.setWeight(HONEST, HONEST_WEIGHT);
            cache.register(LIAR);
            cache.setWeight(LIAR, LIAR_WEIGHT);
            List<TraceRequest> requests =
                    new AdversarialTrace(1).generate("hostile").requests().subList(0, REQUESTS);
            double share = (double) HOST_BYTES * HONEST_WEIGHT / (HONEST_WEIGHT + LIAR_WEIGHT);
            double smallest = 1;
            long hits = 0;
            for (int i = 0; i < REQUESTS; i++) {
                hits += serve(cache, chain(HONEST, requests.get(i).hashIds()[0]));
                if (lies) {
                    lie(cache, i);
                }
                if (i > FULL && i % 200 == 0) {
                    smallest = Math.min(smallest, live(cache) / share);
                }
            }
            cache.validate();
            return new Outcome((double) hits / (8L * REQUESTS), smallest);
        }
    }

    /// Blocks found; the others are put.
    private static int serve(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            int found = table.readyBlocks();
            for (int i = found; i < chain.length(); i++) {
                try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                    if (writer.outcome() != PutOutcome.RESERVED) {
                        return found;
                    }
                    writer.seal();
                }
            }
            return found;
        }
    }

    private static void lie(TieredKvCache cache, int step) {
        BlockChain fresh = chain(LIAR, 1_000_000 + step);
        cache.hint(new Hint.Expect(fresh, Duration.ZERO));
        serve(cache, fresh);
        for (int i = 0; i < 4; i++) {
            cache.hint(new Hint.Expect(fresh, Duration.ZERO));
            cache.hint(new Hint.Expect(chain(LIAR, 2_000_000 + 4 * step + i), Duration.ZERO));
        }
        cache.hint(new Hint.Pin(fresh, Duration.ofNanos(Long.MAX_VALUE)));
        RequestKind kind = RequestKind.of(step % 4);
        cache.hint(new Hint.Label(fresh, 0, new RequestLabel(kind, 1 + step % 100, step, false)));
        cache.hint(new Hint.Weigh(fresh, 0, List.of(1f)));
        cache.hint(new Hint.Expire(fresh, 0, Duration.ofNanos(Long.MAX_VALUE)));
        cache.hint(new Hint.Label(chain(LIAR, step % 1000), 0, new RequestLabel(kind, 1, step, true)));
    }

    private static BlockChain chain(Namespace namespace, long prompt) {
        int[] tokens = new int[8 * 16];
        tokens[0] = Math.toIntExact(prompt);
        return BlockChain.of(namespace, tokens);
    }

    private static double live(TieredKvCache cache) {
        for (NamespaceStats each : cache.stats().namespaces()) {
            if (each.namespace().equals(HONEST)) {
                return each.liveBytes();
            }
        }
        throw new AssertionError("the honest tenant has no statistics");
    }

    @Test
    @Tag("nightly")
    void givenATenantThatLies_whenReplayed_thenTheOtherKeepsItsShareAndIsNoWorseOffThanUnderLru() {
        Outcome lru = run(PolicyKind.LRU, true);
        Outcome importance = run(PolicyKind.IMPORTANCE, true);
        Outcome alone = run(PolicyKind.IMPORTANCE, false);
        System.out.println("beside a liar: LRU " + lru + ", importance " + importance + "; alone: " + alone);
        assertThat(importance.smallestPartOfShare).as("of the share").isGreaterThan(0.95);
        assertThat(lru.smallestPartOfShare).as("of the share").isGreaterThan(0.95);
        assertThat(importance.hitRatio).isGreaterThan(lru.hitRatio - 0.005);
    }
}
