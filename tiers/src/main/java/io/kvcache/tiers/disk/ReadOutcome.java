package io.kvcache.tiers.disk;

/// What became of reading a block.
public enum ReadOutcome {
    /// Its bytes are there, and have its checksum.
    SUCCESS,
    /// The device could not read them.
    IO_ERROR,
    /// Bytes came that are not the block's.
    CHECKSUM_ERROR
}
