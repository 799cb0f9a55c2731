package io.kvcache.bench.sim;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierOffer;
import io.kvcache.core.tier.TierRead;

/// A store behind a tier, with somebody who hears when a span is about to be reclaimed.
record OfferWatch(TierListener store, Runnable watcher) implements TierListener {

    @Override
    public void offered(TierOffer offer) {
        watcher.run();
        store.offered(offer);
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
    public void moved(TierBlock block, long from, long to) {
        store.moved(block, from, to);
    }

    @Override
    public void lost(TierBlock block, long place) {
        store.lost(block, place);
    }
}
