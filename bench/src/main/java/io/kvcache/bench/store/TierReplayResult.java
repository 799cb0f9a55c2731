package io.kvcache.bench.store;

import io.kvcache.bench.replay.HitTotals;

/// What a replay through host memory and a disk showed.
///
/// @param totals hits of both tiers, counted as in the metadata-only replay
/// @param hostHits of these, in host memory when the request came
/// @param deviceHits leading blocks that a device in front of the disk had, wherever else they were
/// @param seconds of everything: making the contents, storing, writing, serving, verifying
public record TierReplayResult(
        HitTotals totals, long hostHits, long deviceHits, DiskWrites written, Check check, double seconds) {

    /// What went to the disk.
    ///
    /// @param putBytes of blocks that were put because no tier had them; a write-through store writes as much
    /// @param blockBytes of those and of others, written once or more
    /// @param allBytes that the disk was given for that: tables, and blocks that were written again to make room
    /// @param evictedUnwritten blocks that left host memory and were on no disk
    public record DiskWrites(long putBytes, long blockBytes, long allBytes, long evictedUnwritten) {

        /// The share of a write-through store's writes that were saved.
        public double savedShare() {
            return putBytes == 0 ? 0 : 1 - (double) blockBytes / putBytes;
        }

        /// Bytes that the disk was given, whatever for, for each byte of blocks that were put.
        public double bytesPerPutByte() {
            return putBytes == 0 ? 0 : (double) allBytes / putBytes;
        }

        /// Bytes that the disk was given for each byte of blocks.
        public double writeAmplification() {
            return blockBytes == 0 ? 0 : (double) allBytes / blockBytes;
        }
    }

    /// Whether it was right.
    ///
    /// @param blocksServed blocks whose bytes were compared, each byte
    /// @param wrongBlocks of those, different from what was put
    /// @param notArrived blocks that were on a disk and did not come
    public record Check(long blocksServed, long wrongBlocks, long notArrived) {

        public boolean passed() {
            return wrongBlocks == 0;
        }
    }

    /// Share of the blocks looked up that were in host memory.
    public double hostHitRatio() {
        return totals.blockAccesses() == 0 ? 0 : (double) hostHits / totals.blockAccesses();
    }

    /// Share of the blocks looked up that came from the disk.
    public double diskHitRatio() {
        return totals.blockHitRatio() - hostHitRatio();
    }

    /// Share of the blocks looked up that an engine found on the device.
    public double deviceHitRatio() {
        return totals.blockAccesses() == 0 ? 0 : (double) deviceHits / totals.blockAccesses();
    }
}
