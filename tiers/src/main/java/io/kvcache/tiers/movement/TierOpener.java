package io.kvcache.tiers.movement;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;

/// Opens a tier, the first time and after it was taken out.
public interface TierOpener {

    /// Returns the name of the tier, open or not.
    String name();

    /// Begins to open it.
    ///
    /// @throws RuntimeException when it cannot be, with the cause
    Tier open(TierListener listener);

    /// The error for a tier that was refused while it opened.
    RuntimeException openFailure(Tier tier);
}
