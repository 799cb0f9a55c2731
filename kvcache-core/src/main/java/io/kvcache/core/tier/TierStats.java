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
/// @param coding of blocks that take fewer bytes there
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
        long blocksRecovered,
        Coding coding) {

    /// What was coded and decoded.
    ///
    /// @param blocks that were written coded
    /// @param plainBytes of these
    /// @param storedBytes of these, in whole pages
    /// @param leftPlain blocks that coding did not make smaller
    /// @param encodedBytes plain bytes that were coded, in vain or not
    /// @param encodeNanos that this took, of all threads together
    /// @param decodedBytes plain bytes
    /// @param decodeNanos that this took, of all threads together, with the check
    public record Coding(
            long blocks,
            long plainBytes,
            long storedBytes,
            long leftPlain,
            long encodedBytes,
            long encodeNanos,
            long decodedBytes,
            long decodeNanos) {

        /// Nothing coded.
        public static final Coding NONE = new Coding(0, 0, 0, 0, 0, 0, 0, 0);
    }

    /// Returns the statistics of a tier without any operation yet.
    public static TierStats empty(String path, long capacityBytes) {
        return new TierStats(path, capacityBytes, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Coding.NONE);
    }
}
