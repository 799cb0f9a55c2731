package io.kvcache.bench.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.disk.DiskEntry;
import io.kvcache.tiers.disk.DiskIndex;
import io.kvcache.tiers.disk.DiskLogListener;
import io.kvcache.tiers.disk.ReadOutcome;
import io.kvcache.tiers.disk.RegionCandidates;

/// Knows how many entries it was told, and nothing else; so what is measured is the log.
final class CountingIndex implements DiskIndex, DiskLogListener {

    private long told;
    private long appended;

    long told() {
        return told;
    }

    long appended() {
        return appended;
    }

    @Override
    public void recovered(DiskEntry entry, long place) {
        told++;
    }

    @Override
    public void buried(DiskEntry tombstone) {}

    @Override
    public void recoveryEnded() {}

    @Override
    public void offered(RegionCandidates offer) {}

    @Override
    public void moved(DiskEntry entry, long from, long to) {}

    @Override
    public void lost(DiskEntry entry, long place) {}

    @Override
    public void registered(Namespace namespace, int number) {}

    @Override
    public void appended(long tag, long place) {
        appended++;
    }

    @Override
    public void read(long tag, ReadOutcome outcome) {}

    @Override
    public void flushed(long tag, boolean durable) {}
}
