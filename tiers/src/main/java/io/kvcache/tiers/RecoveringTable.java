package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.store.ReadyWaiters;
import io.kvcache.tiers.movement.Movement;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// A table that was acquired while the disks still told what they hold: what was known at once, and what is found by
/// a second look.
///
/// The second look comes when the whole chain is known, when the recovery has ended, or never, when the time-out
/// passes before. Until then all blocks that were asked for are expected. What the first look has pinned stays pinned,
/// as its segments may be in use.
final class RecoveringTable implements BlockTable {

    /// How often [#await] asks whether the chain is known by now.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final HostTable.Source source;
    private final Movement movement;
    private final BlockTable first;
    private final Wanted wanted;
    private final Runnable listener = this::look;
    private final Alarm timeout = new Alarm(this::timedOut);
    private final ReadyWaiters waiters = new ReadyWaiters();
    private final Deadline deadline;

    /// What the second look found, if it has more than the first one.
    private @Nullable BlockTable second;

    /// Whether the table in use tells when it has more ready.
    private boolean followed;

    private boolean looked;
    private boolean closed;

    /// What is asked for.
    ///
    /// @param end the block behind the last
    /// @param known whether all of it is known by now
    /// @param again looks a second time, for blocks that arrive by the deadline; null when there is nothing
    record Wanted(int end, BooleanSupplier known, Function<Deadline, @Nullable BlockTable> again) {}

    private RecoveringTable(
            HostTable.Source source, Movement movement, BlockTable first, long timeoutNanos, Wanted wanted) {
        this.source = source;
        this.movement = movement;
        this.first = first;
        this.wanted = wanted;
        deadline = Deadline.in(source.clock(), timeoutNanos);
    }

    /// @param first what is known at once, the table's from now on
    static BlockTable of(HostTable.Source source, BlockTable first, long timeoutNanos, Wanted wanted) {
        Movement movement = source.movement();
        if (movement == null) {
            return first;
        }
        RecoveringTable table = new RecoveringTable(source, movement, first, timeoutNanos, wanted);
        movement.whenRecovered(table.listener);
        table.look(); // the recovery may have ended before it knew of the listener
        return table;
    }

    /// Looks again if it is time.
    private void look() {
        synchronized (this) {
            if (looked || closed) {
                return;
            }
            boolean over = deadline.over();
            if (!over && movement.recovering() && !wanted.known.getAsBoolean()) {
                return;
            }
            looked = true;
            if (!over) {
                second = found();
                followed = false;
            }
            notifyAll();
        }
        movement.forgetRecovered(listener);
        timeout.cancel();
        follow();
    }

    private @Nullable BlockTable found() {
        BlockTable found;
        try {
            found = wanted.again.apply(deadline);
        } catch (IllegalStateException closing) {
            return null;
        }
        if (found == null || (found.endBlock() > first.endBlock() && found.readyBlocks() >= first.readyBlocks())) {
            return found;
        }
        found.close();
        return null;
    }

    /// What questions go to; under the lock.
    private BlockTable now() {
        return second == null ? first : second;
    }

    private void timedOut() {
        look();
        setTimeout(); // again, where the store's clock goes slower than the machine's
    }

    private void setTimeout() {
        boolean goesOn;
        synchronized (this) {
            goesOn = !looked && !closed;
        }
        if (goesOn) {
            timeout.in(Math.max(LOOK_NANOS, deadline.left()));
        }
    }

    /// Tells those who wait, and has itself told when more is ready.
    private void follow() {
        BlockTable of;
        Runnable tell;
        boolean goesOn;
        boolean isSecond;
        int ready;
        synchronized (this) {
            of = now();
            isSecond = second != null;
            ready = of.readyBlocks();
            boolean last = closed || (looked && ready >= of.blocks());
            tell = waiters.takeReady(ready, last);
            goesOn = !last && waiters.hasWaiters() && ready < of.blocks() && !followed;
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
        return now().firstBlock();
    }

    @Override
    public int endBlock() {
        look(); // its time may be over, and nothing else asked since
        synchronized (this) {
            return looked || closed ? now().endBlock() : wanted.end;
        }
    }

    @Override
    public int readyBlocks() {
        look();
        synchronized (this) {
            return now().readyBlocks();
        }
    }

    @Override
    public int await(int blocks, long timeoutNanos) {
        Waiting.requireNotNegative(timeoutNanos);
        long since = source.clock().nanos();
        BlockTable of;
        long left;
        while (true) {
            look();
            left = Math.max(0, timeoutNanos - (source.clock().nanos() - since));
            synchronized (this) {
                of = now();
                if (looked || closed || left == 0 || of.readyBlocks() >= blocks) {
                    break;
                }
                try {
                    source.clock().await(this, Math.min(left, LOOK_NANOS));
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    return of.readyBlocks();
                }
            }
        }
        return of.await(blocks, left);
    }

    @Override
    public CompletionStage<Integer> onReady(int blocks, Executor executor) {
        CompletionStage<Integer> ready;
        synchronized (this) {
            ready = waiters.add(blocks, executor);
        }
        look();
        follow();
        setTimeout();
        return ready;
    }

    @Override
    public MemorySegment segment(int index) {
        return open().segment(index);
    }

    @Override
    public int checksum(int index) {
        return open().checksum(index);
    }

    @Override
    public long handle(int index) {
        return open().handle(index);
    }

    @Override
    public synchronized int cheaperComputed() {
        return now().blocksToRecompute();
    }

    private synchronized BlockTable open() {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        return now();
    }

    @Override
    public void close() {
        @Nullable BlockTable more;
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException("the table is closed twice");
            }
            closed = true;
            more = second;
            notifyAll();
        }
        movement.forgetRecovered(listener);
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
