package io.kvcache.core.tier;

/// Contents of a [Tier], and its counters since it was opened.
///
/// @param path how the bytes travel, as `io_uring, fixed buffers, O_DIRECT`
/// @param capacityBytes of its storage
/// @param blocksWritten blocks and objects
/// @param blockBytesWritten their bytes
/// @param writesFailed taken, and not written
/// @param allBytesWritten to the storage, whatever for
/// @param readsGood blocks and objects read
/// @param readErrors that could not be read
/// @param checksumErrors that came with other bytes
/// @param regionsReclaimed spans made free
/// @param blocksKept written again for that
/// @param blocksRecovered found at opening
public record TierStats(
        String path,
        long capacityBytes,
        long blocksWritten,
        long blockBytesWritten,
        long writesFailed,
        long allBytesWritten,
        long readsGood,
        long readErrors,
        long checksumErrors,
        long regionsReclaimed,
        long blocksKept,
        long blocksRecovered) {

    /// Returns the statistics of a tier without any operation yet.
    public static TierStats empty(String path, long capacityBytes) {
        return new TierStats(path, capacityBytes, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }

    /// Bytes written to the storage for each byte of blocks; 0.0 when none were.
    public double writeAmplification() {
        return blockBytesWritten == 0 ? 0 : (double) allBytesWritten / blockBytesWritten;
    }
}
