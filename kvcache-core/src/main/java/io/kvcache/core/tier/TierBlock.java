package io.kvcache.core.tier;

/// Description of a block or object that the store gives to a tier, and that the tier returns at recovery.
///
/// @param keyHi first half of the key
/// @param keyLo second half of the key
/// @param parentHi first half of the parent's key; both halves 0 for a first block and for objects
/// @param parentLo second half of the parent's key
/// @param namespaceId the store's number of the namespace
/// @param isObject whether it is an object
/// @param depth blocks before this one
/// @param bytes of it, rounding not included; an object's with its key behind it
/// @param checksum CRC32C over the CRC32Cs of the 64 KiB chunks
/// @param engineHash low 64 bits of the engine's own hash, or 0
public record TierBlock(
        long keyHi,
        long keyLo,
        long parentHi,
        long parentLo,
        int namespaceId,
        boolean isObject,
        int depth,
        int bytes,
        int checksum,
        long engineHash) {

    /// Returns whether there is a block before this one.
    public boolean hasParent() {
        return depth > 0;
    }
}
