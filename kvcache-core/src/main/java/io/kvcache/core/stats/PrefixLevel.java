package io.kvcache.core.stats;

import io.kvcache.core.identity.BlockKey;
import java.util.List;

/// The nodes below one, or those that chains begin with.
///
/// @param nodes the most used first, then the largest
/// @param more nodes that were left out
/// @param blocks of all nodes of the level and below them
/// @param bytes of those
public record PrefixLevel(List<PrefixNode> nodes, long more, long blocks, long bytes) {

    public PrefixLevel {
        nodes = List.copyOf(nodes);
    }

    /// A run of blocks without a branch, and all below it.
    ///
    /// @param key of its first block
    /// @param namespaceId as events have it
    /// @param depth blocks before it in its chain
    /// @param run blocks of it; 0 when they were gone again
    /// @param blocks of it and below it, in any tier
    /// @param bytes of those, rounding not included
    /// @param memoryBlocks of those, in host memory
    /// @param diskBlocks of those, on a disk
    /// @param deviceBlocks of those, in the memory of a GPU
    /// @param branches runs that follow directly behind it
    /// @param uses of its first block since that came into host memory, about; -1 when the policy does not
    ///     count
    /// @param lastUse clock reading of the policy at the last use of any of its blocks; -1 when it is not
    ///     known
    public record PrefixNode(
            BlockKey key,
            int namespaceId,
            int depth,
            int run,
            long blocks,
            long bytes,
            long memoryBlocks,
            long diskBlocks,
            long deviceBlocks,
            int branches,
            int uses,
            long lastUse) {}
}
