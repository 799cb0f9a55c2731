package io.kvcache.bench.disk;

/// How long the disk suite takes its time.
///
/// @param memoryRounds times that each trial in memory is run
/// @param diskRounds times that each trial on the disk is run, at most `memoryRounds`
/// @param memoryBytes moved by a trial in memory
/// @param diskBytes moved by a trial on the disk
public record DiskRunLength(int memoryRounds, int diskRounds, long memoryBytes, long diskBytes) {

    /// Enough for figures that go into a document. The CPU of a gigabyte is a few milliseconds, of which fio
    /// counts whole ones, hence four.
    public static final DiskRunLength FULL = new DiskRunLength(15, 5, 4L << 30, 4L << 30);

    /// Enough to see that something has gone wrong.
    public static final DiskRunLength QUICK = new DiskRunLength(1, 1, 1L << 30, 1L << 28);

    /// How often a trial there is run.
    public int rounds(StorageMedium storageMedium) {
        return storageMedium == StorageMedium.MEMORY ? memoryRounds : diskRounds;
    }

    long bytes(StorageMedium storageMedium) {
        return storageMedium == StorageMedium.MEMORY ? memoryBytes : diskBytes;
    }
}
