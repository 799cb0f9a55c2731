package io.kvcache.bench.store;

import io.kvcache.bench.replay.HitTotals;
import org.HdrHistogram.Histogram;

/// What a replay through the real store showed.
///
/// @param totals hits, counted as in the metadata-only replay
/// @param lookupNanos of each request's match, divided by the blocks of its chain
/// @param seconds of everything: making the contents, storing, serving, verifying
public record StoreReplayResult(
        HitTotals totals, BytesMoved bytes, Check check, Histogram lookupNanos, double seconds) {

    /// What moved.
    ///
    /// @param copyNanos time spent copying served blocks out of the store
    public record BytesMoved(long served, long stored, long copyNanos) {

        /// Speed at which blocks were copied out.
        public double gigabytesPerSecond() {
            return copyNanos == 0 ? 0 : (double) served / copyNanos;
        }
    }

    /// Whether it was right.
    ///
    /// @param blocksServed blocks copied out and compared byte for byte
    /// @param wrongBlocks of those, different from what was put
    /// @param leaked tables that were open at the end
    public record Check(long blocksServed, long wrongBlocks, long leaked) {

        public boolean passed() {
            return wrongBlocks == 0 && leaked == 0;
        }
    }
}
