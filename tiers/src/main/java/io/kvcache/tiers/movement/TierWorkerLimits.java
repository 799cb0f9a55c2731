package io.kvcache.tiers.movement;

/// How much a [TierWorker] takes on at a time.
///
/// @param writeBytes on their way to the tier; as much of host memory is pinned by them
/// @param readBytes handed to the tier at a time: beyond that loads wait where they can still be overtaken
///     and given
///     up
/// @param reads as `readBytes`, by number
/// @param maxReadsDuringWrites reads on their way above which no write is begun
public record TierWorkerLimits(long writeBytes, long readBytes, int reads, int maxReadsDuringWrites) {

    private static final long MAX_WRITE_BYTES = 64L << 20;
    private static final int SHARE_OF_HOST = 8;

    /// As much as keeps a link of 60 GB/s busy for a quarter of a millisecond, which is longer than a thread takes to
    /// come back to it.
    private static final long MAX_DEVICE_WRITE_BYTES = 16L << 20;

    private static final int DEVICE_SHARE_OF_HOST = 32;

    /// For a device that is much faster than a disk: less on the way to it, so that fewer blocks are pinned by
    /// writes, and a put that does not wait finds one that is not.
    public static TierWorkerLimits forDevice(long hostBytes) {
        TierWorkerLimits usual = of(hostBytes);
        return new TierWorkerLimits(
                Math.min(MAX_DEVICE_WRITE_BYTES, hostBytes / DEVICE_SHARE_OF_HOST),
                usual.readBytes,
                usual.reads,
                usual.maxReadsDuringWrites);
    }

    /// For a store of this size: an eighth of it, and 64 MiB at most, on the way to each disk.
    public static TierWorkerLimits of(long hostBytes) {
        return new TierWorkerLimits(Math.min(MAX_WRITE_BYTES, hostBytes / SHARE_OF_HOST), 64L << 20, 256, 32);
    }
}
