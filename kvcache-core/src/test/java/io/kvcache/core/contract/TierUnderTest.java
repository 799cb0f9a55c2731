package io.kvcache.core.contract;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;

/// Storage for one tier of the implementation under test, and what the contract may do to it behind the tier's
/// back.
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

    /// Changes one byte of `found` wherever the storage holds these bytes; while no tier is open on it.
    ///
    /// @return in how many places
    int damage(byte[] found);

    /// Makes the storage look as if it belonged to something else; while no tier is open on it.
    void estrange();

    /// A checksum of all bytes of the storage; while no tier is open on it.
    long checksum();

    /// How long a tick may wait: 0 for storage that answers at once or never.
    long waitNanos();

    @Override
    void close();
}
