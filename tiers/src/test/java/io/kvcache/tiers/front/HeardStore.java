package io.kvcache.tiers.front;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead.Outcome;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// What a store hears of its tier.
final class HeardStore implements TierListener {

    final Map<Long, Long> places = new HashMap<>();
    final Map<Long, Outcome> reads = new HashMap<>();
    final Map<Long, Double> worths = new HashMap<>();
    final List<Long> used = new ArrayList<>();

    @Override
    public double worth(long keyHi, long keyLo) {
        return worths.getOrDefault(keyHi, Double.NaN);
    }

    @Override
    public void used(TierBlock block, long place) {
        used.add(block.keyHi());
    }

    @Override
    public Namespace namespace(int namespaceId) {
        throw new AssertionError("nobody asks");
    }

    @Override
    public int namespaceId(Namespace namespace) {
        throw new AssertionError("nobody asks");
    }

    @Override
    public void written(long tag, long place) {
        assertThat(places.put(tag, place)).as("told once").isNull();
    }

    @Override
    public void read(long tag, Outcome outcome) {
        assertThat(reads.put(tag, outcome)).as("told once").isNull();
    }

    @Override
    public void flushed(long tag, boolean durable) {}

    @Override
    public void recovered(TierBlock block, long place) {}

    @Override
    public void buried(long keyHi, long keyLo) {}

    @Override
    public void recoveryEnded() {}

    @Override
    public void offered(ReclaimCandidates offer) {}

    @Override
    public void moved(TierBlock block, long from, long to) {}

    @Override
    public void lost(TierBlock block, long place) {}
}
