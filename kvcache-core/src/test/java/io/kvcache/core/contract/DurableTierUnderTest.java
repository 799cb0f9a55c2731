package io.kvcache.core.contract;

/// Storage that outlives the tiers on it, and what the contract may do to it behind their back.
public interface DurableTierUnderTest extends TierUnderTest {

    /// Creates blank storage.
    @FunctionalInterface
    interface Factory extends TierUnderTest.Factory {

        @Override
        DurableTierUnderTest create();
    }

    /// Changes one byte of `found` wherever the storage holds these bytes; while no tier is open on it.
    ///
    /// @return in how many places
    int damage(byte[] found);

    /// Makes the storage look as if it belonged to something else; while no tier is open on it.
    void estrange();

    /// A checksum of all bytes of the storage; while no tier is open on it.
    long checksum();
}
