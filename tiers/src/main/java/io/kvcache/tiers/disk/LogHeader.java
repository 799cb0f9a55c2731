package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import io.kvcache.tiers.disk.Superblock.Kind;
import io.kvcache.tiers.disk.Superblock.SuperblockCopy;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Header of the disk tier in a file, read without opening it as a log and without changing it.
///
/// @param formatError why a log cannot open it; null when one can
/// @param summary contents of its superblock, even when it is refused for its size; null when there is none
/// @param intactCopies intact copies of the superblock, 0 to 2; one is enough
public record LogHeader(
        @Nullable FormatError formatError, @Nullable TierSummary summary, int intactCopies) {

    /// The version of the format that this program reads and writes.
    public static final int FORMAT_VERSION = Superblock.FORMAT_VERSION;

    /// Contents of the superblock.
    ///
    /// @param superblocks how often one was written: at each opening and for each namespace
    /// @param namespaces by number
    public record TierSummary(DiskGeometry geometry, long superblocks, List<Namespace> namespaces) {

        public TierSummary {
            namespaces = List.copyOf(namespaces);
        }
    }

    /// Reads both copies of the superblock.
    ///
    /// @throws IOException when the file cannot be read
    public static LogHeader read(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            LogHeader header = of(copy(channel, 0), copy(channel, 1), channel.size());
            boolean blank = header.formatError == null && header.summary == null;
            return blank && holdsLog(channel)
                    ? new LogHeader(FormatError.blankOverLog(channel.size()), null, 0)
                    : header;
        }
    }

    private static boolean holdsLog(FileChannel channel) throws IOException {
        if (channel.size() < DiskGeometry.MIN_DEVICE_BYTES) {
            return false;
        }
        DiskGeometry geometry = DiskGeometry.of(channel.size());
        for (int region = 0; region < LogDetector.regionsToProbe(geometry); region++) {
            if (LogDetector.isLogPage(page(channel, LogDetector.headOffset(geometry, region)), geometry)
                    || LogDetector.isLogPage(page(channel, LogDetector.footerOffset(geometry, region)), geometry)) {
                return true;
            }
        }
        return false;
    }

    private static MemorySegment page(FileChannel channel, long start) throws IOException {
        return span(channel, start, DiskGeometry.PAGE_BYTES);
    }

    static LogHeader of(SuperblockCopy first, SuperblockCopy second, long fileBytes) {
        int sound = (first.kind() == Kind.INTACT ? 1 : 0) + (second.kind() == Kind.INTACT ? 1 : 0);
        SuperblockCopy superblockCopy = Superblock.selectNewer(first, second);
        Superblock superblock = superblockCopy.superblock();
        if (superblock != null) {
            TierSummary tierSummary =
                    new TierSummary(superblock.geometry(), superblock.sequence(), superblock.namespaces());
            boolean fits = superblock.geometry().deviceBytes() == fileBytes;
            return new LogHeader(fits ? null : FormatError.of(superblockCopy, fileBytes), tierSummary, sound);
        }
        return new LogHeader(
                superblockCopy.kind() == Kind.BLANK ? null : FormatError.of(superblockCopy, fileBytes), null, sound);
    }

    private static SuperblockCopy copy(FileChannel channel, int copy) throws IOException {
        return Superblock.read(
                span(channel, (long) copy * DiskGeometry.SUPERBLOCK_BYTES, DiskGeometry.SUPERBLOCK_BYTES));
    }

    private static MemorySegment span(FileChannel channel, long start, int length) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length);
        int read = 0;
        while (read >= 0 && bytes.hasRemaining()) {
            read = channel.read(bytes, start + bytes.position());
        }
        return MemorySegment.ofArray(bytes.array());
    }

    /// Detects a log on a device without a superblock, by the footers and first heads of its first regions, which
    /// are used first.
    static final class LogDetector {

        /// More are not looked at: as many pages as a superblock has.
        private static final int MAX_REGIONS = DiskGeometry.SUPERBLOCK_BYTES / DiskGeometry.PAGE_BYTES;

        private LogDetector() {}

        /// How many regions are looked at, from the first on.
        static int regionsToProbe(DiskGeometry geometry) {
            return Math.min(geometry.regions(), MAX_REGIONS);
        }

        static long headOffset(DiskGeometry geometry, int region) {
            return geometry.regionOffset(region);
        }

        static long footerOffset(DiskGeometry geometry, int region) {
            return geometry.regionOffset(region) + geometry.regionBytes() - DiskGeometry.PAGE_BYTES;
        }

        /// Returns whether a page is a footer or a head, of whichever log.
        static boolean isLogPage(MemorySegment page, DiskGeometry geometry) {
            return RegionFooter.read(page, geometry.regionPages()) != null || WriteBatchHeader.read(page) != null;
        }
    }

    /// Why a [DiskLog] left a device alone.
    ///
    /// @param found what is there
    /// @param expected what would have been taken
    public record FormatError(Reason reason, String found, String expected) {

        /// Reason why the device is refused.
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
            String expected = "a blank device, or a disk tier of format version %s on %s bytes"
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
                            Reason.OTHER_VERSION,
                            "a disk tier of format version " + superblockCopy.version(),
                            expected);
                case DAMAGED -> new FormatError(Reason.DAMAGED, "a disk tier whose superblock is damaged", expected);
                case FOREIGN, BLANK -> new FormatError(Reason.FOREIGN, "something that no disk tier wrote", expected);
            };
        }

        /// Why a device is left alone whose superblocks are blank, and whose regions are not.
        static FormatError blankOverLog(long bytes) {
            return new FormatError(
                    Reason.DAMAGED,
                    "a disk tier whose superblocks are both blank, though its regions hold data that formatting would lose"
                            + " (restore the first 2 MiB of the file from a copy)",
                    of(SuperblockCopy.invalid(Superblock.Kind.DAMAGED), bytes).expected);
        }

        /// Both in a sentence.
        public String message() {
            return "found " + found + ", expected " + expected;
        }
    }
}
