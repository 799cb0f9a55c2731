package io.kvcache.core;

/// How much of a chain is here: its leading blocks up to the first that no tier has, each counted once, in the
/// fastest tier that has it. Of a model with windows or states, only as many as have all that a match needs.
///
/// A GPU keeps the blocks that are worth it, which may lie anywhere in a chain. So the counts say how many blocks are
/// in each tier, and not in which order.
///
/// @param deviceBlocks in the memory of a GPU, whether or not they are in a slower tier too. An engine on that GPU
///     reads them there; other readers wait for them as for a disk, unless host memory has them too
/// @param hostBlocks in host memory and on no GPU
/// @param diskBlocks on a disk alone
/// @param fullBlocks leading blocks that are here, also those behind which a window or state is missing
public record Match(int deviceBlocks, int hostBlocks, int diskBlocks, int fullBlocks) {

    public static final Match NOTHING = new Match(0, 0, 0);

    /// A match that lacks no window or state.
    public Match(int deviceBlocks, int hostBlocks, int diskBlocks) {
        this(deviceBlocks, hostBlocks, diskBlocks, deviceBlocks + hostBlocks + diskBlocks);
    }

    /// Leading blocks that are here at all.
    public int blocks() {
        return deviceBlocks + hostBlocks + diskBlocks;
    }

    /// Where a window or state is worth putting: behind this number of blocks another prompt has parted from this
    /// one, and there is none. 0 when the match lacks none.
    public int checkpointWanted() {
        return fullBlocks > blocks() ? fullBlocks : 0;
    }
}
