package io.kvcache.core.tier;

import io.kvcache.core.identity.Namespace;

/// Passes on all that a tier tells to another listener: the base of those who stand between a tier and its store
/// and change a part of what is told.
///
/// **Threads.** As of [TierListener].
public abstract class RelayingListener implements TierListener {

    private final TierListener store;

    /// @param store who is told
    protected RelayingListener(TierListener store) {
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
    public void written(long tag, long place) {
        store.written(tag, place);
    }

    @Override
    public void read(long tag, TierRead.Outcome outcome) {
        store.read(tag, outcome);
    }

    @Override
    public void flushed(long tag, boolean durable) {
        store.flushed(tag, durable);
    }

    @Override
    public void recovered(TierBlock block, long place) {
        store.recovered(block, place);
    }

    @Override
    public void buried(long keyHi, long keyLo) {
        store.buried(keyHi, keyLo);
    }

    @Override
    public void recoveryEnded() {
        store.recoveryEnded();
    }

    @Override
    public void offered(TierOffer offer) {
        store.offered(offer);
    }

    @Override
    public void moved(TierBlock block, long from, long to) {
        store.moved(block, from, to);
    }

    @Override
    public void lost(TierBlock block, long place) {
        store.lost(block, place);
    }

    @Override
    public void used(TierBlock block, long place) {
        store.used(block, place);
    }

    @Override
    public double worth(long keyHi, long keyLo) {
        return store.worth(keyHi, keyLo);
    }
}
