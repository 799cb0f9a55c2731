package io.kvcache.tiers;

import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/// Counts who has a claim on the store's memory, and bars new claims once the store closes.
///
/// Opening adds first and looks for the bar afterwards; closing sets the bar first and sums afterwards. So
/// either the opener sees the bar, or the closer sees the opener.
final class Holders {

    private final boolean tracks;
    private final LongAdder open = new LongAdder();
    private final LongAdder opened = new LongAdder();
    private final Set<Hold> held = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean barred = new AtomicBoolean();

    /// @param tracks whether to remember each claim and its stack
    Holders(boolean tracks) {
        this.tracks = tracks;
    }

    /// @throws IllegalStateException when the store is closed
    void requireOpen() {
        if (barred.get()) {
            throw new IllegalStateException("the store is closed");
        }
    }

    /// Takes a claim.
    ///
    /// @throws IllegalStateException when the store is closed
    Hold enter(Object what) {
        open.increment();
        if (barred.get()) {
            open.decrement();
            requireOpen();
        }
        if (!tracks) {
            return Hold.UNTRACKED;
        }
        opened.increment();
        Hold hold = new Hold(opened.sum(), what, new Throwable("held since here"));
        held.add(hold);
        return hold;
    }

    /// Gives a claim back.
    void leave(Hold hold) {
        if (tracks) {
            held.remove(hold);
        }
        open.decrement();
    }

    /// Bars new claims; answers false when that was done before.
    boolean bar() {
        return barred.compareAndSet(false, true);
    }

    long count() {
        return open.sum();
    }

    /// Who holds what, for a log line; with the oldest claim's stack when holders are tracked.
    IllegalStateException report() {
        String counted = count() + " tables, views or writers are open";
        if (!tracks) {
            return new IllegalStateException(counted + "; trackHolders(true) shows who took them");
        }
        return held.stream()
                .min(Comparator.comparingLong(Hold::number))
                .map(oldest -> new IllegalStateException(counted + "; the oldest: " + oldest.what(), oldest.where()))
                .orElseGet(() -> new IllegalStateException(counted));
    }
}
