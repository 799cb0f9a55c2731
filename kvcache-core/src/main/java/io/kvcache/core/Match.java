package io.kvcache.core;

/// How much of a chain is here. The counts are of leading blocks, by the fastest tier that has them.
///
/// @param deviceBlocks in GPU memory
/// @param hostBlocks in host memory and not in a faster tier
/// @param diskBlocks on disk only
public record Match(int deviceBlocks, int hostBlocks, int diskBlocks) {

    public static final Match NOTHING = new Match(0, 0, 0);

    /// Leading blocks that are here at all.
    public int blocks() {
        return deviceBlocks + hostBlocks + diskBlocks;
    }
}
