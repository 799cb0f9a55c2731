package io.kvcache.core.tier;

import io.kvcache.core.identity.Namespace;

/// Passes on all that a tier reports to another listener: the base of listeners between a tier and its store
/// and change a part of the reports.
///
/// **Threads.** As of [TierListener].
public abstract class ForwardingListener implements TierListener {

    private final TierListener store;

    /// @param store that gets them
    protected ForwardingListener(TierListener store) {
        this.store = store;
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return store.namespace(namespaceId);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        return store.namespaceId(namespace);
    }

    @Override
    public void onWritten(long tag, long place) {
        store.onWritten(tag, place);
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        store.onRead(tag, outcome);
    }

    @Override
    public void onFlushed(long tag, boolean durable) {
        store.onFlushed(tag, durable);
    }

    @Override
    public void onRecovered(TierBlock block, long place) {
        store.onRecovered(block, place);
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        store.onTombstone(keyHi, keyLo);
    }

    @Override
    public void onRecoveryEnded() {
        store.onRecoveryEnded();
    }

    @Override
    public void onReclaim(ReclaimCandidates offer) {
        store.onReclaim(offer);
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        store.onMoved(block, from, to);
    }

    @Override
    public void onLost(TierBlock block, long place) {
        store.onLost(block, place);
    }

    @Override
    public void onUsed(TierBlock block, long place) {
        store.onUsed(block, place);
    }

    @Override
    public double score(long keyHi, long keyLo) {
        return store.score(keyHi, keyLo);
    }
}
