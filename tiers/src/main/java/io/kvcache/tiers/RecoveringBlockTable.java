package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.memory.ReadyWaiters;
import io.kvcache.core.time.Timeouts;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// A table that was acquired while the disks still told what they hold: what was known at once, and what is found
/// by a second look.
///
/// The second look comes when the whole chain is known, when the recovery has ended, or never, when the time-out
/// passes before. Until then all blocks that were asked for are expected. What the first look has pinned stays
/// pinned, as its segments may be in use.
final class RecoveringBlockTable implements BlockTable {

    /// How often [#await] asks whether the chain is known by now.
    private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final StoreContext storeContext;
    private final TierScheduler tierScheduler;
    private final BlockTable first;
    private final SecondLookup secondLookup;
    private final Runnable listener = this::update;
    private final DelayedTask timeout = new DelayedTask(this::onTimeout);
    private final ReadyWaiters waiters = new ReadyWaiters();
    private final Deadline deadline;

    /// Result of the second lookup, if it has more than the first one.
    private @Nullable BlockTable second;

    /// True if the table in use tells when it has more ready.
    private boolean followed;

    private boolean lookedAgain;
    private boolean closed;

    /// Blocks that the caller asked for.
    ///
    /// @param end the block behind the last
    /// @param isKnown whether all of it is known by now
    /// @param lookAgain looks a second time, for blocks that arrive by the deadline; null when there is nothing
    record SecondLookup(int end, BooleanSupplier isKnown, Function<Deadline, @Nullable BlockTable> lookAgain) {}

    private RecoveringBlockTable(
            StoreContext storeContext,
            TierScheduler tierScheduler,
            BlockTable first,
            long timeoutNanos,
            SecondLookup secondLookup) {
        this.storeContext = storeContext;
        this.tierScheduler = tierScheduler;
        this.first = first;
        this.secondLookup = secondLookup;
        deadline = Deadline.after(storeContext.clock(), timeoutNanos);
    }

    /// @param first what is known at once, the table's from now on
    static BlockTable of(StoreContext storeContext, BlockTable first, long timeoutNanos, SecondLookup secondLookup) {
        TierScheduler tierScheduler = storeContext.tierScheduler();
        if (tierScheduler == null) {
            return first;
        }
        RecoveringBlockTable table =
                new RecoveringBlockTable(storeContext, tierScheduler, first, timeoutNanos, secondLookup);
        tierScheduler.addRecoveryListener(table.listener);
        table.update(); // the recovery may have ended before it knew of the listener
        return table;
    }

    /// Looks again if it is time.
    private void update() {
        synchronized (this) {
            if (lookedAgain || closed) {
                return;
            }
            boolean over = deadline.isExpired();
            if (!over && tierScheduler.isRecovering() && !secondLookup.isKnown.getAsBoolean()) {
                return;
            }
            lookedAgain = true;
            if (!over) {
                second = lookAgain();
                followed = false;
            }
            notifyAll();
        }
        tierScheduler.removeRecoveryListener(listener);
        timeout.cancel();
        follow();
    }

    private @Nullable BlockTable lookAgain() {
        BlockTable found;
        try {
            found = secondLookup.lookAgain.apply(deadline);
        } catch (IllegalStateException closing) {
            return null;
        }
        if (found == null || (found.endBlock() > first.endBlock() && found.readyEnd() >= first.readyEnd())) {
            return found;
        }
        found.close();
        return null;
    }

    /// Returns the table that answers the caller; under the lock.
    private BlockTable current() {
        return second == null ? first : second;
    }

    private void onTimeout() {
        update();
        scheduleTimeout(); // again, where the store's clock goes slower than the machine's
    }

    private void scheduleTimeout() {
        boolean goesOn;
        synchronized (this) {
            goesOn = !lookedAgain && !closed;
        }
        if (goesOn) {
            timeout.schedule(Math.max(POLL_NANOS, deadline.remainingNanos()));
        }
    }

    /// Wakes the waiting threads, and registers for the next block that becomes ready.
    private void follow() {
        BlockTable of;
        Runnable tell;
        boolean goesOn;
        boolean isSecond;
        int ready;
        synchronized (this) {
            of = current();
            isSecond = second != null;
            ready = of.readyEnd();
            boolean last = closed || (lookedAgain && ready >= of.endBlock());
            tell = waiters.takeReady(ready, last);
            goesOn = !last && waiters.hasWaiters() && ready < of.endBlock() && !followed;
            followed |= goesOn;
        }
        tell.run();
        if (goesOn) {
            var _ = of.onReady(ready + 1, Runnable::run).whenComplete((_, _) -> followAgain(isSecond));
        }
    }

    private void followAgain(boolean isSecond) {
        synchronized (this) {
            followed &= isSecond != (second != null);
        }
        follow();
    }

    @Override
    public synchronized int firstBlock() {
        return current().firstBlock();
    }

    @Override
    public int endBlock() {
        update(); // its time may be over, and nothing else asked since
        synchronized (this) {
            return lookedAgain || closed ? current().endBlock() : secondLookup.end;
        }
    }

    @Override
    public int readyEnd() {
        update();
        synchronized (this) {
            return current().readyEnd();
        }
    }

    @Override
    public int await(int end, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long since = storeContext.clock().nanos();
        BlockTable of;
        long left;
        while (true) {
            update();
            left = Math.max(0, timeoutNanos - (storeContext.clock().nanos() - since));
            synchronized (this) {
                of = current();
                if (lookedAgain || closed || left == 0 || of.readyEnd() >= end) {
                    break;
                }
                try {
                    storeContext.clock().await(this, Math.min(left, POLL_NANOS));
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    return of.readyEnd();
                }
            }
        }
        return of.await(end, Duration.ofNanos(left));
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        CompletionStage<Integer> ready;
        synchronized (this) {
            ready = waiters.add(end, executor);
        }
        update();
        follow();
        scheduleTimeout();
        return ready;
    }

    @Override
    public MemorySegment segment(int index) {
        return requireOpen().segment(index);
    }

    @Override
    public int checksum(int index) {
        return requireOpen().checksum(index);
    }

    @Override
    public long handle(int index) {
        return requireOpen().handle(index);
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // the very table
    public BlockTable part(int part) {
        BlockTable open = requireOpen();
        BlockTable found = open.part(part);
        return found == open ? this : found;
    }

    @Override
    public synchronized int blocksToRecompute() {
        return current().blocksToRecompute();
    }

    private synchronized BlockTable requireOpen() {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        return current();
    }

    @Override
    public synchronized boolean isValid() {
        return current().isValid();
    }

    @Override
    public void close() {
        @Nullable BlockTable more;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            more = second;
            notifyAll();
        }
        tierScheduler.removeRecoveryListener(listener);
        timeout.cancel();
        try {
            if (more != null) {
                more.close();
            }
        } finally {
            first.close();
        }
        follow();
    }
}
