package io.kvcache.core.policy;

/// Whether a block that was never seen moves the clock by which ages are told.
///
/// Ages count in blocks used. A scan of prompts that come once would make everything old within
/// minutes, and what is old counts for dead. So new blocks move the clock only as often as they
/// usually come: for each block that is used again, as many as there were between two such blocks
/// lately, and half a cache of them ahead. Beyond that the clock stands until something is used
/// again.
///
/// **Threads.** One writer, the holder of the store's lock.
final class ScanResistantClock {

    /// Used blocks that "lately" means, as a multiple of the resident blocks.
    private static final double MEMORY = 8;

    /// New blocks ahead, as a multiple of the resident blocks: a burst of long prompts is no scan.
    private static final double AHEAD = 0.5;

    private static final int MIN_USES = 64;

    private double meanNewPerReuse;
    private double allowed;
    private long sinceUse;
    private long uses;

    /// A block was used that was seen before.
    ///
    /// @param size resident blocks
    void onKnownUse(int size) {
        uses++;
        meanNewPerReuse +=
                (sinceUse - meanNewPerReuse) / Math.clamp((double) uses, 1, MEMORY * Math.max(MIN_USES, size));
        sinceUse = 0;
        allowed = Math.min(allowed + meanNewPerReuse, AHEAD * Math.max(MIN_USES, size));
    }

    /// A block was used that was not.
    ///
    /// @param size resident blocks
    /// @return whether the clock is to move; always so before a cache full has been used again
    boolean advancesClock(int size) {
        sinceUse++;
        if (uses <= size || allowed >= 1) {
            allowed = Math.max(0, allowed - 1);
            return true;
        }
        return false;
    }
}
