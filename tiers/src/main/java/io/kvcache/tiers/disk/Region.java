package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import io.kvcache.core.codec.StoredLayout;
import java.lang.foreign.MemorySegment;

/// State of one region, as the log knows it.
final class Region {

    /// Phase in the life of a region.
    enum State {
        /// Not looked at yet.
        UNKNOWN,
        /// May be opened: its footer says durably that nothing in it counts.
        FREE,
        /// Batches are added to it.
        OPEN,
        /// Full; its trailer is not written yet.
        CLOSING,
        /// Holds blocks.
        CLOSED,
        /// Its kept entries are being written elsewhere.
        RECLAIMING,
        /// Its places are stale, its footer does not say so yet.
        FREEING,
        /// Its footer cannot be written; not used until the next opening.
        BAD
    }

    private final int index;
    private State state = State.UNKNOWN;
    private long epoch;
    private int generation;
    private int readers;

    Region(int index) {
        this.index = index;
    }

    int index() {
        return index;
    }

    State state() {
        return state;
    }

    void transitionTo(State next) {
        state = next;
    }

    /// Number of its life, or of its last.
    long epoch() {
        return epoch;
    }

    void setEpoch(long number) {
        epoch = number;
    }

    long addressOf(DiskEntry entry) {
        return LogAddress.of(entry.layout(), generation, index, entry.page());
    }

    /// Returns whether the address still names the entry that it was handed out for.
    boolean isCurrent(long address) {
        return address == LogAddress.of(StoredLayout.ofAddress(address), generation, index, LogAddress.page(address))
                && switch (state) {
                    case OPEN, CLOSING, CLOSED, RECLAIMING -> true;
                    case UNKNOWN, FREE, FREEING, BAD -> false;
                };
    }

    /// Makes all places in it stale.
    void invalidateAddresses() {
        generation++;
        state = State.FREEING;
    }

    int readers() {
        return readers;
    }

    void startReading() {
        readers++;
    }

    void endReading() {
        readers--;
        assert readers >= 0 : "region " + index + " has " + readers + " readers";
    }

    /// One filling of one region, from its opening to its being free again. Every page of metadata in a region
    /// names the life it belongs to, so what an earlier life left behind, or a device that was formatted anew, or
    /// a write that went astray, is known for what it is.
    ///
    /// @param device the number that the device got when it was formatted
    /// @param number counts lives over the whole device and is never given twice: of two lives the higher is
    ///     later
    record RegionEpoch(long device, int region, long number) {

        /// Offset of the region epoch in every kind of page, behind magic, checksum and count.
        private static final long NUMBER = 16;

        private static final long DEVICE = 24;
        private static final long REGION = 32;

        void write(MemorySegment page) {
            page.set(INT64, NUMBER, number);
            page.set(INT64, DEVICE, device);
            page.set(INT32, REGION, region);
        }

        static RegionEpoch read(MemorySegment page) {
            return new RegionEpoch(page.get(INT64, DEVICE), page.get(INT32, REGION), page.get(INT64, NUMBER));
        }
    }
}
