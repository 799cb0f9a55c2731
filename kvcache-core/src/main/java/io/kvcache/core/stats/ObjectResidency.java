package io.kvcache.core.stats;

import io.kvcache.core.identity.BlockKey;

/// An object that a store has, and where.
///
/// @param namespaceId as events have it
/// @param digest of its key
/// @param bytes of value and key together
/// @param uses since it came into host memory, about; -1 when that is not known
/// @param lastUse clock reading of the policy; -1 when it is not known
public record ObjectResidency(
        int namespaceId, BlockKey digest, long bytes, boolean inMemory, boolean onDisk, int uses, long lastUse) {}
