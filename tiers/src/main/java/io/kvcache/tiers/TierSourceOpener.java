package io.kvcache.tiers;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.movement.TierOpener;
import java.lang.foreign.MemorySegment;

/// Opens a tier that somebody else brings.
///
/// @param slots the store's host memory, which blocks travel from and to
record TierSourceOpener(TierSource source, MemorySegment slots) implements TierOpener {

    @Override
    public String name() {
        return source.name();
    }

    @Override
    public Tier open(TierListener listener) {
        return source.open(listener, slots);
    }

    @Override
    public RuntimeException openFailure(Tier tier) {
        return new IllegalStateException(name() + " is " + tier.state() + ": " + tier.cause());
    }
}
