package io.kvcache.tiers.movement;

import io.kvcache.core.Clock;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierRead;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Brings blocks from a tier into the slots that were reserved for them. Owned by the mover's thread, but for the
/// counters.
final class Loading {

    private final int disk;
    private final TierPort disks;
    private final Clock clock;
    private final Arrivals arrivals;
    private final MoverLimits limits;
    private final MoverQueue queue;
    private final Map<Long, Reading> underWay = new HashMap<>();
    private final Latencies latencies = new Latencies();
    private final ReadPace pace = new ReadPace();
    private final LongAdder loaded = new LongAdder();
    private final LongAdder loadedBytes = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final LongAdder cancelled = new LongAdder();
    private @Nullable Reading held;
    private volatile int count;
    private long bytes;
    private long nextTag;
    private long now;

    private record Reading(TierPort.PendingRead read, long sinceNanos) {}

    Loading(Mover.Around around, MoverQueue queue) {
        disk = around.disk();
        disks = around.disks();
        clock = around.clock();
        arrivals = around.arrivals();
        limits = around.limits();
        this.queue = queue;
    }

    int pump(Tier tier, long nowNanos) {
        now = nowNanos;
        int done = 0;
        while (count < limits.reads() && bytes < limits.readBytes()) {
            Reading next = held == null ? next() : held;
            held = null;
            if (next == null || !submit(tier, next)) {
                return done;
            }
            done++;
        }
        return done;
    }

    /// The next load that is still wanted.
    private @Nullable Reading next() {
        for (MoverQueue.Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            TierPort.PendingRead read = disks.nextRead(load.record(), load.wanted());
            if (read != null && read.disk() == disk) {
                return new Reading(read, load.sinceNanos());
            }
            if (read == null) {
                cancelled.increment();
                arrivals.changed(load.record());
            } else {
                end(read, false, false);
            }
        }
        return null;
    }

    /// Answers false when the tier takes no more now.
    private boolean submit(Tier tier, Reading reading) {
        TierPort.PendingRead read = reading.read;
        long tag = ++nextTag;
        return switch (tier.read(new TierRead(read.block(), read.address(), read.pages(), tag))) {
            case ACCEPTED -> {
                pace.begins(count, clock.nanos());
                underWay.put(tag, reading);
                count = underWay.size();
                bytes += read.block().bytes();
                yield true;
            }
            case RETRY -> {
                held = reading;
                yield false;
            }
            case GONE -> {
                end(read, false, true);
                yield true;
            }
            case REJECTED -> {
                end(read, false, false);
                yield true;
            }
        };
    }

    void ended(long tag, TierRead.Outcome outcome) {
        Reading reading = underWay.remove(tag);
        if (reading == null) {
            return; // of a tier that was given up
        }
        count = underWay.size();
        bytes -= reading.read.block().bytes();
        boolean good = outcome == TierRead.Outcome.SUCCESS;
        if (good) {
            pace.ended(reading.read.block().bytes(), count, clock.nanos());
            loaded.increment();
            loadedBytes.add(reading.read.block().bytes());
            latencies.record(now - reading.sinceNanos);
        } else {
            failures.increment();
        }
        end(reading.read, good, !good);
    }

    private void end(TierPort.PendingRead read, boolean good, boolean lost) {
        disks.onRead(read.record(), read.block().checksum(), good, lost);
        arrivals.changed(read.record());
    }

    /// Ends all that is on its way as not read; the memory is nobody's but the store's by now.
    void abandon() {
        underWay.values().forEach(reading -> end(reading.read, false, false));
        underWay.clear();
        count = 0;
        bytes = 0;
        refuseAll();
    }

    /// Ends all that waits as not read.
    void refuseAll() {
        Reading waiting = held;
        held = null;
        if (waiting != null) {
            end(waiting.read, false, false);
        }
        for (MoverQueue.Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            TierPort.PendingRead read = disks.nextRead(load.record(), load.wanted());
            if (read == null) {
                arrivals.changed(load.record());
            } else {
                end(read, false, false);
            }
        }
    }

    /// Whether so much is on its way that writes have to wait.
    boolean busy() {
        return count >= limits.writesBesideReads() || held != null;
    }

    boolean idle() {
        return count == 0 && held == null && queue.loads() == 0;
    }

    int waiting() {
        return queue.loads();
    }

    int underWay() {
        return count;
    }

    long loaded() {
        return loaded.sum();
    }

    long loadedBytes() {
        return loadedBytes.sum();
    }

    long failures() {
        return failures.sum();
    }

    long cancelled() {
        return cancelled.sum();
    }

    /// How long it takes to read so many bytes more, after what is on its way and what waits; 0 while
    /// nothing is known.
    double nanos(long moreBytes) {
        long each = loadedBytes() / Math.max(1, loaded());
        return pace.nanos(moreBytes + each * (count + queue.loads()));
    }

    MoverStats.Latency latency() {
        return latencies.summary();
    }
}
