package io.kvcache.core.contract;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;

/// Storage for one tier of the implementation under test.
///
/// **Ownership.** The test that created it closes it, after the tiers that it opened on it.
public interface TierUnderTest extends AutoCloseable {

    /// Creates blank storage.
    @FunctionalInterface
    interface Factory {

        TierUnderTest create();
    }

    /// Opens a tier on the storage, as the next process would; while no other is open on it.
    Tier open(TierListener listener);

    /// How long a tick may wait: 0 for storage that answers at once or never.
    long waitNanos();

    @Override
    void close();
}
