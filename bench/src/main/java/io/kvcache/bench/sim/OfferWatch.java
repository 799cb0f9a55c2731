package io.kvcache.bench.sim;

import io.kvcache.core.tier.RelayingListener;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierOffer;

/// A store behind a tier, with somebody who hears when a span is about to be reclaimed.
final class OfferWatch extends RelayingListener {

    private final Runnable watcher;

    OfferWatch(TierListener store, Runnable watcher) {
        super(store);
        this.watcher = watcher;
    }

    @Override
    public void offered(TierOffer offer) {
        watcher.run();
        super.offered(offer);
    }
}
