package io.kvcache.tiers.disk;

/// Why a [DiskLog] left a device alone.
///
/// @param found what is there
/// @param expected what would have been taken
public record Refusal(Reason reason, String found, String expected) {

    /// What is wrong with the device.
    public enum Reason {
        /// It holds something that no disk tier wrote.
        FOREIGN,
        /// It was written under another format version.
        OTHER_VERSION,
        /// Both copies of its superblock are damaged.
        DAMAGED,
        /// It is not as large as when it was formatted.
        OTHER_SIZE,
        /// It could not be read. This is never discarded, since the next try may succeed.
        UNREADABLE
    }

    /// Both in a sentence.
    public String message() {
        return "found " + found + ", expected " + expected;
    }
}
