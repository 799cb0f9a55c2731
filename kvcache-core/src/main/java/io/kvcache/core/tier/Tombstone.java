package io.kvcache.core.tier;

/// What is not to count any longer, though a tier still has its bytes: everything that was written under a key, or in
/// a whole namespace.
///
/// @param keyHi first half of the key; 0 of a namespace
/// @param keyLo second half of the key; 0 of a namespace
/// @param namespaceId the store's number of the namespace
/// @param isNamespace whether it is of the namespace, and not of a key
public record Tombstone(long keyHi, long keyLo, int namespaceId, boolean isNamespace) {

    /// Of one key.
    public static Tombstone of(TierBlock block) {
        return new Tombstone(block.keyHi(), block.keyLo(), block.namespaceId(), false);
    }

    /// Of a whole namespace.
    public static Tombstone of(int namespaceId) {
        return new Tombstone(0, 0, namespaceId, true);
    }
}
