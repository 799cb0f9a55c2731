package io.kvcache.core.event;

/// One block or object entered or left one tier.
///
/// @param sequence counts from 0 without gaps
/// @param kind what happened
/// @param tier where
/// @param namespaceId as in [StoreSnapshot#namespaces()]
/// @param keyHi first half of the key
/// @param keyLo second half of the key
/// @param parentHi first half of the parent's key; 0 for a first block and for objects
/// @param parentLo second half of the parent's key
/// @param depth blocks before this one
/// @param engineHash low 64 bits of the engine's own hash, or 0
/// @param parentEngineHash the same of the parent
public record CacheEvent(
        long sequence,
        EventKind kind,
        TierKind tier,
        int namespaceId,
        long keyHi,
        long keyLo,
        long parentHi,
        long parentLo,
        int depth,
        long engineHash,
        long parentEngineHash) {}
