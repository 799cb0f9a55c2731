package io.kvcache.core.policy;

import java.util.function.LongConsumer;

/// Lets time pass with the uses of one [ImportancePolicy]'s blocks, and has its lists ranked when a turn
/// is over or the guard steps in.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AccessClock {

    private final PolicyState state;
    private final ReuseTracker reuseTracker;
    private final LongConsumer afterEpoch;
    private final LruFallback lruFallback = new LruFallback();
    private final ScanResistantClock scanResistantClock = new ScanResistantClock();

    /// @param afterTurn hears what the clock reads when a turn is over
    AccessClock(PolicyState state, ReuseTracker reuseTracker, LongConsumer afterTurn) {
        this.state = state;
        this.reuseTracker = reuseTracker;
        this.afterEpoch = afterTurn;
    }

    LruFallback lruFallback() {
        return lruFallback;
    }

    /// Tells the guard of a use.
    ///
    /// @param hit whether the block was here
    /// @param copied whether a slower tier has it too: losing it is no miss, so it is not compared
    void recordOutcome(boolean hit, boolean copied, long fingerprint) {
        if (lruFallback.onUse(fingerprint, hit, copied)) {
            rank();
        }
    }

    /// Time passes by a block that is used and was here.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long onUse(int size) {
        scanResistantClock.onKnownUse(size);
        return tick(size);
    }

    /// Time passes by a block that comes, unless too many come that were never seen.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long onAdmit(boolean seen, int size) {
        if (seen) {
            scanResistantClock.onKnownUse(size);
        }
        return seen || scanResistantClock.advancesClock(size) ? tick(size) : state.now();
    }

    /// Time passes.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long tick(int size) {
        long now = state.tick();
        if (reuseTracker.countUse()) {
            reuseTracker.advanceEpoch(now, size);
            rank();
            afterEpoch.accept(now);
        }
        return now;
    }

    /// Ranks the lists as the guard has it.
    void rank() {
        if (lruFallback.followsLru()) {
            reuseTracker.rankByAge();
        } else {
            reuseTracker.rankByScore(state.now(), state.reloadCostRatio());
        }
    }
}
