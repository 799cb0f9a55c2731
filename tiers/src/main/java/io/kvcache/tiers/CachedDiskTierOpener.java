package io.kvcache.tiers;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.front.CachedDiskTier;
import io.kvcache.tiers.front.RetiredTiers;
import io.kvcache.tiers.movement.TierOpener;
import java.lang.foreign.MemorySegment;

/// Opens a disk with a tier that somebody else brings in front of it.
///
/// @param slots the store's host memory, which blocks travel from and to
/// @param retiredTiers what was in front of it before and is still used
record CachedDiskTierOpener(TierOpener disk, TierSource front, MemorySegment slots, RetiredTiers retiredTiers)
        implements TierOpener {

    @Override
    public String name() {
        return disk.name();
    }

    @Override
    public Tier open(TierListener listener) {
        return new CachedDiskTier(
                front.name(), disk::open, before -> front.open(before, slots), listener, retiredTiers);
    }

    @Override
    public void closeRetired() {
        retiredTiers.close();
    }

    @Override
    public RuntimeException openFailure(Tier tier) {
        return disk.openFailure(tier instanceof CachedDiskTier fronted ? fronted.disk() : tier);
    }
}
