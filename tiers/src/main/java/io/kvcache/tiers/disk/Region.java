package io.kvcache.tiers.disk;

/// What the log knows of one region.
final class Region {

    /// What a region is in.
    enum State {
        /// Not looked at yet.
        UNKNOWN,
        /// May be opened: its footer says durably that nothing in it counts.
        FREE,
        /// Groups are added to it.
        OPEN,
        /// Full; its trailer is not written yet.
        CLOSING,
        /// Holds blocks.
        CLOSED,
        /// What is kept of it is written elsewhere.
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

    long addressOf(int page) {
        return LogAddress.of(generation, index, page);
    }

    /// Whether what lay at the place still lies there.
    boolean isCurrent(long address) {
        return address == addressOf(LogAddress.page(address))
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
}
