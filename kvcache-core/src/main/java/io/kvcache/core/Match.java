package io.kvcache.core;

/// How much of a chain is here: its leading blocks up to the first that no tier has, each counted once, in the
/// fastest tier that has it.
///
/// A GPU keeps the blocks that are worth it, which may lie anywhere in a chain. So the counts say how many blocks are
/// in each tier, and not in which order.
///
/// @param deviceBlocks in the memory of a GPU, whether or not they are in a slower tier too. An engine on that GPU
///     reads them there; other readers wait for them as for a disk, unless host memory has them too
/// @param hostBlocks in host memory and on no GPU
/// @param diskBlocks on a disk alone
public record Match(int deviceBlocks, int hostBlocks, int diskBlocks) {

    public static final Match NOTHING = new Match(0, 0, 0);

    /// Leading blocks that are here at all.
    public int blocks() {
        return deviceBlocks + hostBlocks + diskBlocks;
    }
}
