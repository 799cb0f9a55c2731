package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.Superblock.SuperblockCopy;

/// Why a [DiskLog] left a device alone.
///
/// @param found what is there
/// @param expected what would have been taken
public record FormatError(Reason reason, String found, String expected) {

    /// What is wrong with the device.
    public enum Reason {
        /// It holds something that no disk tier wrote.
        FOREIGN,
        /// It was written under another format version.
        OTHER_VERSION,
        /// Both copies of its superblock are damaged, or blank over regions that are not.
        DAMAGED,
        /// It is not as large as when it was formatted.
        OTHER_SIZE,
        /// It could not be read. This is never discarded, since the next try may succeed.
        UNREADABLE
    }

    /// Why a device is left alone on which `superblockCopy` was found.
    ///
    /// @param bytes of the device
    static FormatError of(SuperblockCopy superblockCopy, long bytes) {
        String expected = "a blank device, or a disk tier of format version %d on %d bytes"
                .formatted(Superblock.FORMAT_VERSION, bytes);
        Superblock other = superblockCopy.superblock();
        return switch (superblockCopy.kind()) {
            case INTACT -> {
                long otherBytes = other == null ? 0 : other.geometry().deviceBytes();
                yield new FormatError(Reason.OTHER_SIZE, "a disk tier of " + otherBytes + " bytes", expected);
            }
            case UNREADABLE -> new FormatError(Reason.UNREADABLE, "a superblock that cannot be read", expected);
            case OTHER_VERSION ->
                new FormatError(
                        Reason.OTHER_VERSION, "a disk tier of format version " + superblockCopy.version(), expected);
            case DAMAGED -> new FormatError(Reason.DAMAGED, "a disk tier whose superblock is damaged", expected);
            case FOREIGN, BLANK -> new FormatError(Reason.FOREIGN, "something that no disk tier wrote", expected);
        };
    }

    /// Why a device is left alone whose superblocks are blank, and whose regions are not.
    static FormatError blankOverLog(long bytes) {
        return new FormatError(
                Reason.DAMAGED,
                "a disk tier whose superblocks are both blank: its regions hold data, which formatting would lose."
                        + " Restore the first 2 MiB of the file from a copy",
                of(SuperblockCopy.invalid(Superblock.Kind.DAMAGED), bytes).expected);
    }

    /// Both in a sentence.
    public String message() {
        return "found " + found + ", expected " + expected;
    }
}
