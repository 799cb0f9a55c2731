package io.kvcache.bench.disk;

import io.kvcache.bench.disk.DiskRun.AccessPattern;
import java.nio.file.Path;
import java.util.Locale;
import java.util.SplittableRandom;

/// One run of a mover over a file; what several questions ask for is run once a round.
///
/// @param pieceBytes of each read or write
/// @param repeat which one, where the same is run several times a round
public record DiskRun(IoEngine mover, StorageMedium place, AccessPattern pattern, int pieceBytes, int repeat) {

    public static DiskRun of(IoEngine ioEngine, StorageMedium storageMedium, AccessPattern pattern, int pieceBytes) {
        return new DiskRun(ioEngine, storageMedium, pattern, pieceBytes, 1);
    }

    /// The same once more, for a control.
    public DiskRun repeated() {
        return new DiskRun(mover, place, pattern, pieceBytes, repeat + 1);
    }

    /// A size in whole KiB or MiB.
    public static String sizeInWords(int bytes) {
        return bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
    }

    /// For progress: `device random_read of 1 MiB, memory`.
    public String describe() {
        return String.format(
                Locale.ROOT,
                "%s %s of %s, %s%s",
                mover.name().toLowerCase(Locale.ROOT),
                pattern.name().toLowerCase(Locale.ROOT),
                sizeInWords(pieceBytes),
                place.name().toLowerCase(Locale.ROOT),
                repeat > 1 ? ", again" : "");
    }

    /// The medium of the file that is read and written.
    public enum StorageMedium {
        /// In tmpfs, which lacks the variance of a disk, so that the cost of the software shows.
        MEMORY,
        /// On a file system with a disk.
        DISK
    }

    /// The engine that moves the bytes.
    public enum IoEngine {
        /// Our block device, on the best path available.
        DEVICE,
        /// The same, but each piece has its own memory, out of as many bytes as [#STORE] has for blocks. Memory
        /// outside the processor's caches costs more to fill than a few buffers that stay there.
        DEVICE_INTO_SLOTS,
        /// Our block device in a thread to which the kernel denies io_uring.
        DEVICE_WITHOUT_URING,
        /// A store that brings blocks from a disk tier into host memory, verified and pinned; only reads.
        STORE,
        /// fio with io_uring, fixed buffers and a registered file.
        FIO_URING,
        /// fio with as many threads as the queue is deep, each with blocking reads and writes.
        FIO_PSYNC
    }

    /// The pieces of a file that a run touches, and their order.
    public enum AccessPattern {
        /// Blocks that an onboard reads: any, with the same seed each time.
        RANDOM_READ,
        /// Regions of 64 MiB that an offload writes, one after the other, front to back. As regions lie side by
        /// side and pieces fill them, this is the file from its front to its end, again and again.
        REGION_WRITE;

        static final long SEED = 42;

        boolean isWrite() {
            return this == REGION_WRITE;
        }

        /// Numbers of pieces, one a call.
        OffsetSequence offsets(long pieces) {
            return switch (this) {
                case RANDOM_READ -> {
                    SplittableRandom random = new SplittableRandom(SEED);
                    yield () -> random.nextLong(pieces);
                }
                case REGION_WRITE -> {
                    long[] next = new long[1];
                    yield () -> next[0]++ % pieces;
                }
            };
        }

        /// The number of the next piece.
        @FunctionalInterface
        interface OffsetSequence {
            long next();
        }
    }

    /// The bytes that one trial moved, and their cost.
    ///
    /// @param cpuSeconds user and system time of the threads that moved them
    /// @param inFlight requests in flight, averaged over the time; 0 when the engine does not count them
    /// @param path how the bytes travelled, in the words of the device; empty for fio
    public record TransferResult(long bytes, double seconds, double cpuSeconds, double inFlight, String path) {

        private static final double GIGABYTE = 1e9;

        public double gigabytesPerSecond() {
            return bytes / GIGABYTE / seconds;
        }

        public double cpuMillisPerGigabyte() {
            return cpuSeconds * 1e3 / (bytes / GIGABYTE);
        }
    }

    /// The bytes to move, for our device and for fio alike.
    ///
    /// @param fileBytes a multiple of `pieceBytes`
    /// @param totalBytes moved in all, a multiple of `pieceBytes` for each request in the queue
    /// @param depth requests on their way at a time
    record IoWorkload(Path file, long fileBytes, long totalBytes, AccessPattern pattern, int pieceBytes, int depth) {

        long pieces() {
            return totalBytes / pieceBytes;
        }
    }
}
