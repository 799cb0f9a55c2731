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

/// Records the calls of a tier to its store.
final class RecordingTierListener implements TierListener {

    final Map<Long, Long> addresses = new HashMap<>();
    final Map<Long, Outcome> reads = new HashMap<>();
    final Map<Long, Double> scores = new HashMap<>();
    final List<Long> used = new ArrayList<>();

    @Override
    public double score(long keyHi, long keyLo) {
        return scores.getOrDefault(keyHi, Double.NaN);
    }

    @Override
    public void onUsed(TierBlock block, long address) {
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
    public void onWritten(long tag, long address) {
        assertThat(addresses.put(tag, address)).as("told once").isNull();
    }

    @Override
    public void onRead(long tag, Outcome outcome) {
        assertThat(reads.put(tag, outcome)).as("told once").isNull();
    }

    @Override
    public void onFlushed(long tag, boolean durable) {}

    @Override
    public void onRecovered(TierBlock block, long address) {}

    @Override
    public void onTombstone(long keyHi, long keyLo) {}

    @Override
    public void onRecoveryEnded() {}

    @Override
    public void onReclaim(ReclaimCandidates offer) {}

    @Override
    public void onMoved(TierBlock block, long from, long to) {}

    @Override
    public void onLost(TierBlock block, long address) {}
}
