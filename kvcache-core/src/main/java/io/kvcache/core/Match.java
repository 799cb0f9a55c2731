package io.kvcache.core;

/// How much of a chain is here. The counts are of leading blocks, by the fastest tier that has them.
///
/// @param deviceBlocks in GPU memory. Always 0 by now: no store knows blocks of a GPU from those of the tier that
///     it stands in front of, so they count as `diskBlocks`
/// @param hostBlocks in host memory and not in a faster tier
/// @param diskBlocks in a lower tier alone: on disk, or in the memory of a GPU
public record Match(int deviceBlocks, int hostBlocks, int diskBlocks) {

    public static final Match NOTHING = new Match(0, 0, 0);

    /// Leading blocks that are here at all.
    public int blocks() {
        return deviceBlocks + hostBlocks + diskBlocks;
    }
}
