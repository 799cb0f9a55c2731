package io.kvcache.bench.sim;

import io.kvcache.core.tier.ForwardingListener;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierListener;

/// A store behind a tier, with somebody who hears when a span is about to be reclaimed.
final class ReclaimObserver extends ForwardingListener {

    private final Runnable watcher;

    ReclaimObserver(TierListener store, Runnable watcher) {
        super(store);
        this.watcher = watcher;
    }

    @Override
    public void onReclaim(ReclaimCandidates offer) {
        watcher.run();
        super.onReclaim(offer);
    }
}
