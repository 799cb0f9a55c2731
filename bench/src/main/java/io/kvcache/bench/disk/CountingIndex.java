package io.kvcache.bench.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.disk.DiskEntry;
import io.kvcache.tiers.disk.LogListener;

/// Knows how many entries it was told, and nothing else; so what is measured is the log.
final class CountingIndex implements LogListener {

    private long told;
    private long appended;

    long recoveredCount() {
        return told;
    }

    long appended() {
        return appended;
    }

    @Override
    public void onRecovered(DiskEntry entry, long place) {
        told++;
    }

    @Override
    public void onTombstone(DiskEntry tombstone) {}

    @Override
    public void onRecoveryEnded() {}

    @Override
    public void onReclaim(ReclaimCandidates offer) {}

    @Override
    public void onMoved(DiskEntry entry, long from, long to) {}

    @Override
    public void onLost(DiskEntry entry, long place) {}

    @Override
    public void onNamespaceRegistered(Namespace namespace, int number) {}

    @Override
    public void onAppended(long tag, long place) {
        appended++;
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {}

    @Override
    public void onFlushed(long tag, boolean durable) {}
}
