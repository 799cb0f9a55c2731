package io.kvcache.tiers.movement;

import io.kvcache.core.Clock;
import io.kvcache.core.store.LoadBatch;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.AdmissionKind;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/// All movement between host memory and the tiers below it: one [Mover] and one queue a tier.
///
/// **Threads.** Any, but for [#tick] and [#open], which are for the threads that drive it, one a tier.
public final class Movement implements Mover.Progress {

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
    private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// Free slots of a class below which some are made free ahead of need, and up to which: a few
    /// milliseconds of loads on a store of some GiB, and too little of it to cost hits.
    private static final int LOW_PERCENT = 1;

    private static final int HIGH_PERCENT = 2;

    /// A flush begins with what was used so often since it was put, then goes on with the next: whoever runs out of
    /// time has the best.
    private static final int[] USES_FIRST = {4, 1, 0};

    private final TierPort disks;
    private final Clock clock;
    private final Arrivals arrivals = new Arrivals();
    private final List<Mover> movers = new ArrayList<>();
    private final List<MoverQueue> queues = new ArrayList<>();
    private final WriteShares shares;
    private final BitSet recovering = new BitSet();
    private final Object restoring = new Object();
    private final Set<Runnable> untilRecovered = Collections.synchronizedSet(new LinkedHashSet<>());

    /// Whether [#recovering] has any: what every acquire asks.
    private volatile boolean anyRecovers;

    /// One tier to move to and from.
    ///
    /// @param limitBytes alive on it at most
    /// @param ranked whether the host tier's policy says what stays there, see [TierPort#addDisk]
    public record Target(TierOpener opener, long limitBytes, WriteBudget budget, boolean ranked) {

        /// One where what stays goes by last use.
        public Target(TierOpener opener, long limitBytes, WriteBudget budget) {
            this(opener, limitBytes, budget, false);
        }
    }

    /// What is written.
    ///
    /// @param waitingBytes that may wait to be written
    /// @param eachBytes a larger block is not written
    /// @param gain what one use of a block saves in units of what its write costs, for
    ///     [AdmissionKind#VALUE]
    public record Admitting(AdmissionKind kind, long waitingBytes, long eachBytes, double gain) {}

    /// Tells the store of its disks; they are opened by [#open].
    public Movement(TierPort disks, Clock clock, List<Target> targets, Admitting admitting, MoverLimits limits) {
        this.disks = disks;
        this.clock = clock;
        shares = new WriteShares(targets.stream().mapToLong(Target::limitBytes).toArray());
        recovering.set(0, targets.size());
        anyRecovers = !targets.isEmpty();
        for (Target target : targets) {
            MoverQueue queue = new MoverQueue();
            int disk = disks.addDisk(target.limitBytes(), target.ranked());
            Mover.Around around = new Mover.Around(disk, disks, clock, target.opener(), arrivals, limits, shares);
            movers.add(new Mover(around, target.budget(), queue, this));
            queues.add(queue);
        }
        disks.configureAdmission(admitting.kind(), admitting.waitingBytes(), admitting.eachBytes(), admitting.gain());
    }

    /// How many tiers there are.
    public int tiers() {
        return movers.size();
    }

    /// Opens a tier; what it holds is told by later ticks.
    ///
    /// @throws RuntimeException when it is refused
    public void open(int disk) {
        movers.get(disk).open();
    }

    /// Moves what there is to move between host memory and one tier.
    ///
    /// @param waitNanos how long to wait when there is nothing to do
    /// @return how much was done
    public int tick(int disk, long waitNanos) {
        if (disk == 0) {
            disks.evictAhead(LOW_PERCENT, HIGH_PERCENT);
        }
        return movers.get(disk).tick(clock.nanos(), waitNanos);
    }

    /// Whether nothing is on its way to or from a tier.
    public boolean idle(int disk) {
        return movers.get(disk).idle();
    }

    /// Says which thread ticks a tier, so that it can be woken.
    void drivenBy(int disk, Thread thread) {
        movers.get(disk).drivenBy(thread);
    }

    /// Who hears when records arrive.
    public Arrivals arrivals() {
        return arrivals;
    }

    /// Has loads that were started read.
    ///
    /// @param demanded whether somebody waits
    /// @param keep whether they go on though nobody waits any longer
    public void read(LoadBatch loads, boolean demanded, boolean keep) {
        long asked = 0;
        for (int i = 0; i < loads.count(); i++) {
            if (loads.isStarted(i)) {
                int disk = loads.disk(i);
                asked |= 1L << disk;
                read(loads.record(i), disk, demanded, keep);
            } else if (demanded) {
                hurry(loads.record(i));
            }
        }
        for (int disk = 0; asked != 0; disk++, asked >>>= 1) {
            if ((asked & 1) != 0) {
                movers.get(disk).wake();
            }
        }
    }

    /// Has one load that was started read, for somebody who waits.
    public void read(int record, int disk) {
        read(record, disk, true, false);
        movers.get(disk).wake();
    }

    /// Somebody waits for a record that others have had read, if it is on its way at all: it goes before what is
    /// only expected.
    public void hurry(int record) {
        for (MoverQueue queue : queues) {
            queue.hurry(record);
        }
    }

    /// Has one load that was started read, though nobody waits for it yet.
    public void expect(int record, int disk) {
        read(record, disk, false, true);
        movers.get(disk).wake();
    }

    /// Reads that a tier has to do: on their way, or waiting to be.
    public int reads(int disk) {
        return movers.get(disk).reads();
    }

    private void read(int record, int disk, boolean demanded, boolean keep) {
        if (demanded) {
            queues.get(disk).demand(record, keep, clock.nanos());
        } else {
            queues.get(disk).expect(record, clock.nanos());
        }
    }

    /// How long it takes to read so many bytes more, spread over all tiers, judged by the reads of the
    /// last while.
    ///
    /// @return 0 while nothing is known
    public double readNanos(long bytes) {
        long each = bytes / movers.size();
        return movers.stream().mapToDouble(mover -> mover.readNanos(each)).max().orElse(0);
    }

    /// Begins to make durable all that is sealed and dropped by now, whatever its worth, what was used most
    /// often first. To be asked on until it has an outcome. What was dropped before a tier has told of it can be
    /// buried only then, so it waits for that.
    public Flush flush() {
        long unwritten = disks.unwrittenCount();
        for (int leastUses : USES_FIRST) {
            for (int from = 0; disks.queueUnwritten(from, leastUses); from += TierPort.scanBatch()) {}
        }
        movers.forEach(Mover::wake);
        return new Flush(disks, unwritten, () -> !recovering(), this::flushTiers);
    }

    /// Begins to make durable what waits to be written by now.
    public Flush flushQueued() {
        movers.forEach(Mover::wake);
        return new Flush(disks, disks.unwrittenCount(), () -> true, this::flushTiers);
    }

    private List<CompletableFuture<Boolean>> flushTiers() {
        List<CompletableFuture<Boolean>> all = new ArrayList<>();
        for (int disk = 0; disk < movers.size(); disk++) {
            all.add(queues.get(disk).flush());
            movers.get(disk).wake();
        }
        return all;
    }

    /// Waits for a flush, through interrupts: who closes a store must not lose what it has.
    ///
    /// @return whether all that was asked for is durable
    public boolean await(Flush flush, long timeoutNanos) {
        boolean interrupted = Thread.interrupted(); // no pause takes any time while it is
        try {
            return await(flush, timeoutNanos, () -> false);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// Waits for a flush until this thread is interrupted.
    ///
    /// @return whether all that was asked for is durable
    public boolean awaitUntilInterrupted(Flush flush, long timeoutNanos) {
        return await(flush, timeoutNanos, () -> Thread.currentThread().isInterrupted());
    }

    private boolean await(Flush flush, long timeoutNanos, BooleanSupplier givenUp) {
        long start = clock.nanos();
        long pause = FIRST_PAUSE_NANOS;
        while (!flush.ended()) {
            if (givenUp.getAsBoolean() || clock.nanos() - start >= timeoutNanos) {
                return false;
            }
            clock.sleep(pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
        }
        return flush.durable();
    }

    /// Has a tier that was taken out, or does not write any more, opened again.
    public void reopen(int disk) {
        movers.get(disk).reopen();
        movers.get(disk).wake();
    }

    /// Ends the wait of a tier's thread.
    public void wake(int disk) {
        movers.get(disk).wake();
    }

    /// Lets go of a tier, by the thread that drives it.
    public void close(int disk) {
        movers.get(disk).close();
    }

    /// What goes on, by tier.
    public List<MoverStats> stats() {
        return movers.stream().map(Mover::stats).toList();
    }

    /// Whether a tier has more to tell of what it held before.
    public boolean recovering() {
        return anyRecovers;
    }

    /// Waits until every tier has told all that it held before, or this thread is interrupted.
    ///
    /// @return whether they have
    public boolean awaitRecovered(long timeoutNanos) {
        long start = clock.nanos();
        long pause = FIRST_PAUSE_NANOS;
        while (recovering()) {
            if (Thread.currentThread().isInterrupted() || clock.nanos() - start >= timeoutNanos) {
                return false;
            }
            clock.sleep(pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
        }
        return true;
    }

    /// Has a listener run on a tier's thread when the recovery that is under way ends, the first that came first:
    /// what they find then shares host memory and the disks' reads. It may have ended before: ask
    /// [#recovering] afterwards.
    public void whenRecovered(Runnable listener) {
        untilRecovered.add(listener);
    }

    /// Takes a listener of [#whenRecovered] away, if it is still there.
    public void forgetRecovered(Runnable listener) {
        untilRecovered.remove(listener);
    }

    /// Waits until what others have told is in its place.
    @Override
    public void telling(int disk) {
        synchronized (restoring) {
            synchronized (this) {
                recovering.set(disk);
                anyRecovers = true;
            }
            disks.beginRecovery(disk);
        }
    }

    @Override
    public void recovered(int disk) {
        synchronized (restoring) {
            boolean last;
            synchronized (this) {
                last = recovering.get(disk) && recovering.cardinality() == 1;
            }
            if (last) {
                disks.endRecovery();
            }
            synchronized (this) {
                recovering.clear(disk);
                anyRecovers = !recovering.isEmpty();
            }
        }
        if (!recovering()) {
            List<Runnable> told;
            synchronized (untilRecovered) {
                told = List.copyOf(untilRecovered);
                untilRecovered.clear();
            }
            told.forEach(Runnable::run);
        }
    }

    @Override
    public void writable(int disk, boolean can) {
        shares.writable(disk, can);
        disks.setWritable(shares.anyWritable());
    }
}
