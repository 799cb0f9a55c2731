package io.kvcache.core;

import io.kvcache.core.identity.Namespace;

/// What one namespace holds and has asked for.
///
/// @param blocksAsked blocks of the chains given to `acquire`, from block `from` on
/// @param blocksFound those that were ready
/// @param objectsAsked look-ups of objects by `getObject`
/// @param objectsFound those that were here
/// @param live blocks and objects here now
/// @param liveBytes their bytes, rounding not included
public record NamespaceStats(
        Namespace namespace,
        long blocksAsked,
        long blocksFound,
        long objectsAsked,
        long objectsFound,
        long live,
        long liveBytes) {}
