package io.kvcache.core.policy;

import java.util.function.LongConsumer;

/// Lets time pass with the uses of one [Importance]'s blocks, and has its lists ranked when a turn
/// is over or the guard steps in.
///
/// **Threads.** One writer, the holder of the store's lock.
final class UseClock {

    private final PolicyState state;
    private final Lessons lessons;
    private final LongConsumer afterTurn;
    private final Guard guard = new Guard();
    private final Newcomers newcomers = new Newcomers();

    /// @param afterTurn hears what the clock reads when a turn is over
    UseClock(PolicyState state, Lessons lessons, LongConsumer afterTurn) {
        this.state = state;
        this.lessons = lessons;
        this.afterTurn = afterTurn;
    }

    Guard guard() {
        return guard;
    }

    /// Tells the guard of a use.
    ///
    /// @param hit whether the block was here
    /// @param copied whether a slower tier has it too: losing it is no miss, so it is not compared
    void compare(boolean hit, boolean copied, long fingerprint) {
        if (guard.use(fingerprint, hit, copied)) {
            rank();
        }
    }

    /// Time passes by a block that is used and was here.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long use(int size) {
        newcomers.other(size);
        return tick(size);
    }

    /// Time passes by a block that comes, unless too many come that were never seen.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long enter(boolean seen, int size) {
        if (seen) {
            newcomers.other(size);
        }
        return seen || newcomers.moves(size) ? tick(size) : state.now();
    }

    /// Time passes.
    ///
    /// @param size resident blocks
    /// @return what the clock reads
    long tick(int size) {
        long now = state.tick();
        if (lessons.isDue()) {
            lessons.turn(now, size);
            rank();
            afterTurn.accept(now);
        }
        return now;
    }

    /// Ranks the lists as the guard has it.
    void rank() {
        if (guard.followsLru()) {
            lessons.rankByAge();
        } else {
            lessons.rankByWorth(state.now(), state.copyWorth());
        }
    }
}
