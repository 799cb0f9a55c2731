package io.kvcache.core.tier;

/// Mark that earlier copies do not count any longer, though a tier still has their bytes: everything that was
/// written under a key, or in a whole namespace.
///
/// @param keyHi first half of the key; 0 of a namespace
/// @param keyLo second half of the key; 0 of a namespace
/// @param namespaceId the store's number of the namespace
/// @param isNamespace whether it covers the namespace, and not a key
public record Tombstone(long keyHi, long keyLo, int namespaceId, boolean isNamespace) {

    /// Returns the tombstone of one key.
    public static Tombstone of(TierBlock block) {
        return new Tombstone(block.keyHi(), block.keyLo(), block.namespaceId(), false);
    }

    /// Returns the tombstone of a whole namespace.
    public static Tombstone of(int namespaceId) {
        return new Tombstone(0, 0, namespaceId, true);
    }
}
