package io.kvcache.core;

import io.kvcache.core.identity.Namespace;

/// Contents of one namespace, and the requests for it.
///
/// @param blocksRequested blocks of the chains given to `acquire` and `getRange`, from block `from` on,
///     and blocks of which a [DiskBlock] has read a part, once for each part
/// @param blocksFound those that were ready, or became so while their table was open, or of which the
///     wanted part was read
/// @param blocksLoaded of these, from a slower tier, in whole or in part
/// @param blocksFromDevice of these, that an engine took from the memory of its own GPU, where no disk had to be
///     read for others below them
/// @param objectsRequested look-ups of objects by `getObject` and `fetchObject`, and parts that a
///     [DiskBlock] has read
/// @param objectsFound those that were here
/// @param live blocks and objects known now, in any tier
/// @param liveBytes their bytes, rounding not included
public record NamespaceStats(
        Namespace namespace,
        long blocksRequested,
        long blocksFound,
        long blocksLoaded,
        long blocksFromDevice,
        long objectsRequested,
        long objectsFound,
        long live,
        long liveBytes) {}
