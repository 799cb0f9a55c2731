package io.kvcache.tiers;

import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Counts the claims on the store's memory, and rejects new claims once the store closes.
///
/// Opening adds first and looks for the bar afterwards; closing sets the bar first and sums afterwards. So
/// either the opener sees the bar, or the closer sees the opener.
final class OpenHandles {

    private final boolean trackStacks;
    private final LongAdder open = new LongAdder();
    private final LongAdder opened = new LongAdder();
    private final Set<OpenHandle> held = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean closed = new AtomicBoolean();

    /// @param tracks whether to remember each claim and its stack
    OpenHandles(boolean tracks) {
        this.trackStacks = tracks;
    }

    /// @throws IllegalStateException when the store is closed
    void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the store is closed");
        }
    }

    /// Takes a claim.
    ///
    /// @throws IllegalStateException when the store is closed
    OpenHandle acquire(Object what) {
        open.increment();
        if (closed.get()) {
            open.decrement();
            requireOpen();
        }
        if (!trackStacks) {
            return OpenHandle.UNTRACKED;
        }
        opened.increment();
        OpenHandle openHandle = new OpenHandle(opened.sum(), what, new Throwable("held since here"));
        held.add(openHandle);
        return openHandle;
    }

    /// Gives a claim back.
    void release(OpenHandle openHandle) {
        if (trackStacks) {
            held.remove(openHandle);
        }
        open.decrement();
    }

    /// Bars new claims; answers false when that was done before.
    boolean stopAccepting() {
        return closed.compareAndSet(false, true);
    }

    long openCount() {
        return open.sum();
    }

    /// Describes the open claims for a log line, with the stack of the oldest when holders are tracked.
    IllegalStateException leakReport() {
        String counted = openCount() + " tables, views or writers are open";
        if (!trackStacks) {
            return new IllegalStateException(counted + "; trackHolders(true) shows who took them");
        }
        return held.stream()
                .min(Comparator.comparingLong(OpenHandle::number))
                .map(oldest -> new IllegalStateException(
                        counted + "; the oldest: " + oldest.description(), oldest.acquiredAt()))
                .orElseGet(() -> new IllegalStateException(counted));
    }

    /// A claim on the store's memory: an open table, view or writer.
    ///
    /// @param number counts claims from 0; the lowest is the oldest
    /// @param description what is held, for the report
    /// @param acquiredAt the stack of the thread that took it, when the store tracks its holders
    record OpenHandle(
            long number, Object description, @Nullable Throwable acquiredAt) {

        /// Stands for every claim when the store does not track them.
        static final OpenHandle UNTRACKED = new OpenHandle(-1, "", null);
    }
}
