package io.kvcache.tiers.movement;

import io.kvcache.core.spi.Clock;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.Tier.RangeTier;
import io.kvcache.core.tier.Tier.RangeTier.TierRange;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.movement.TierScheduler.LoadListeners;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.TierWorker.WorkerListener;
import io.kvcache.tiers.movement.TierWorkerQueue.Load;
import io.kvcache.tiers.movement.TierWorkerQueue.RangeLoad;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Brings blocks from a tier into the slots that were reserved for them. Owned by the tier worker's thread, but
/// for the counters.
final class LoadPump {

    /// Parts that are handed on before the tier's next tick, in which the device begins with them.
    private static final int PARTS_PER_TICK = 16;

    private final int disk;
    private final TierPort tierPort;
    private final Clock clock;
    private final LoadListeners loadListeners;
    private final TierWorkerLimits limits;
    private final TierWorkerQueue queue;
    private final WorkerListener workerListener;
    private final Map<Long, Load> inFlight = new HashMap<>();
    private final LatencyRecorder latencyRecorder = new LatencyRecorder();
    private final ReadThroughput throughput = new ReadThroughput();
    private final LongAdder loaded = new LongAdder();
    private final LongAdder loadedBytes = new LongAdder();
    private final LongAdder partsRead = new LongAdder();
    private final LongAdder partBytes = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final LongAdder cancelled = new LongAdder();
    private final Map<Long, RangeLoad> rangesInFlight = new HashMap<>();
    private final StepPump stepPump;
    private @Nullable Load held;
    private @Nullable RangeLoad heldRange;
    private volatile int inFlightCount;
    private long bytes;
    private long nextTag;
    private long now;

    LoadPump(TierWorker.WorkerContext workerContext, TierWorkerQueue queue, WorkerListener workerListener) {
        disk = workerContext.disk();
        tierPort = workerContext.tierPort();
        clock = workerContext.clock();
        loadListeners = workerContext.loadListeners();
        limits = workerContext.limits();
        this.queue = queue;
        this.workerListener = workerListener;
        stepPump = new StepPump(disk, tierPort, this);
    }

    int pump(Tier tier, long nowNanos) {
        now = nowNanos;
        int done = pumpRanges(tier);
        int parts = stepPump.parts();
        while (operations() < limits.reads()
                && bytes + stepPump.bytes() < limits.readBytes()
                && stepPump.parts() - parts < PARTS_PER_TICK
                && startNext(tier)) {
            done++;
        }
        return done;
    }

    /// Reads that the tier was given.
    private int operations() {
        return inFlight.size() + stepPump.parts();
    }

    /// Hands on what is next; answers false when there is nothing, or the tier takes no more now.
    private boolean startNext(Tier tier) {
        Load waiting = held;
        held = null;
        if (waiting != null) {
            return submit(tier, waiting);
        }
        SteppedLoads steps = stepPump.hasNext() ? null : queue.nextStepped();
        if (steps != null) {
            stepPump.begin(steps);
        }
        if (stepPump.hasNext()) {
            boolean taken = stepPump.submitNext(tier);
            countInFlight();
            return taken;
        }
        Load next = next();
        return next != null && submit(tier, next);
    }

    private void countInFlight() {
        inFlightCount = inFlight.size() + stepPump.begun();
    }

    /// Hands on reads of parts; a tier that has none answers them all by no.
    private int pumpRanges(Tier tier) {
        int done = 0;
        while (rangesInFlight.size() < limits.reads()) {
            RangeLoad next = heldRange == null ? queue.nextRange() : heldRange;
            heldRange = null;
            if (next == null || !submitRange(tier, next)) {
                break;
            }
            done++;
        }
        return done;
    }

    /// Answers false when the tier takes no more now.
    private boolean submitRange(Tier tier, RangeLoad load) {
        if (!(tier instanceof RangeTier parts)) {
            load.done().complete(false);
            return true;
        }
        TierPort.DiskCopy copy = load.copy();
        long tag = ++nextTag;
        switch (parts.readRange(new TierRange(copy.block(), copy.address(), load.from(), load.target(), tag))) {
            case ACCEPTED -> rangesInFlight.put(tag, load);
            case RETRY -> {
                heldRange = load;
                return false;
            }
            case GONE, REJECTED -> load.done().complete(false);
        }
        return true;
    }

    private void rejectRanges() {
        rangesInFlight.values().forEach(load -> load.done().complete(false));
        rangesInFlight.clear();
        RangeLoad next = heldRange == null ? queue.nextRange() : heldRange;
        heldRange = null;
        for (; next != null; next = queue.nextRange()) {
            next.done().complete(false);
        }
    }

    /// The next load that is still wanted.
    private @Nullable Load next() {
        for (Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            load.read = tierPort.nextRead(disk, load.record, load.wanted, ++nextTag);
            if (load.read == null) {
                onCancelled(load);
            } else if (load.read.address() < 0) {
                finish(load, false, false); // the device in front has it no longer
            } else {
                return load;
            }
        }
        return null;
    }

    /// No caller waits for a load any longer.
    void onCancelled(Load load) {
        cancelled.increment();
        loadListeners.notifyChanged(load.record);
    }

    long nextTag() {
        return ++nextTag;
    }

    /// A read is handed to the tier.
    void onReadStarted() {
        throughput.onReadStarted(operations(), clock.nanos());
    }

    /// Reads a load whole; answers false when the tier takes no more now.
    boolean submit(Tier tier, Load load) {
        TierRead read = load.read();
        return switch (tier.read(read)) {
            case ACCEPTED -> {
                onReadStarted();
                inFlight.put(read.tag(), load);
                countInFlight();
                bytes += read.bytes();
                yield true;
            }
            case RETRY -> {
                held = load;
                yield false;
            }
            case GONE -> {
                finish(load, false, true);
                yield true;
            }
            case REJECTED -> {
                finish(load, false, false);
                yield true;
            }
        };
    }

    void onRead(long tag, TierRead.Outcome outcome) {
        RangeLoad range = rangesInFlight.remove(tag);
        if (range != null) {
            boolean there = outcome == TierRead.Outcome.SUCCESS;
            if (there) {
                partsRead.increment();
                partBytes.add(range.target().byteSize());
            } else {
                failures.increment();
            }
            range.done().complete(there);
            return;
        }
        if (stepPump.onRead(tag, outcome)) {
            countInFlight();
            return;
        }
        Load load = inFlight.remove(tag);
        if (load == null) {
            return; // of a tier that was given up
        }
        int length = load.read().bytes();
        countInFlight();
        bytes -= length;
        boolean good = outcome == TierRead.Outcome.SUCCESS;
        if (good) {
            onPartRead(length);
        }
        end(load, good, !good);
    }

    /// The tier has read the given number of bytes.
    void onPartRead(int length) {
        throughput.onReadEnded(length, operations(), clock.nanos());
    }

    /// The given number of leading bytes of a load are there.
    void onProgress(Load load, int arrived) {
        loadListeners.notifyArrived(load.record, arrived);
    }

    /// A load has ended, by what the tier has read or because it is given up.
    void end(Load load, boolean good, boolean lost) {
        if (good) {
            loaded.increment();
            loadedBytes.add(load.read().bytes());
            latencyRecorder.record(now - load.sinceNanos);
        } else if (lost) {
            failures.increment();
        } else {
            cancelled.increment();
        }
        finish(load, good, lost);
    }

    private void finish(Load load, boolean good, boolean lost) {
        int elsewhere = good ? -1 : tierPort.fallBack(disk, load.record, lost);
        if (elsewhere >= 0) {
            workerListener.readElsewhere(load.record, elsewhere);
            return;
        }
        tierPort.onRead(load.record, load.read().checksum(), good, lost);
        loadListeners.notifyChanged(load.record);
    }

    /// Ends all that is on its way as not read; the memory belongs to the store alone by now.
    void failInFlight() {
        inFlight.values().forEach(load -> finish(load, false, false));
        inFlight.clear();
        bytes = 0;
        stepPump.failInFlight();
        rejectWaiting();
    }

    /// Ends all that waits as not read.
    void rejectWaiting() {
        rejectRanges();
        stepPump.rejectWaiting();
        Load waiting = held;
        held = null;
        if (waiting != null) {
            finish(waiting, false, false);
        }
        for (Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            load.read = tierPort.nextRead(disk, load.record, load.wanted, ++nextTag);
            if (load.read == null) {
                loadListeners.notifyChanged(load.record);
            } else {
                finish(load, false, false);
            }
        }
        for (SteppedLoads next = queue.nextStepped(); next != null; next = queue.nextStepped()) {
            stepPump.reject(next);
        }
        countInFlight();
    }

    /// Returns whether writes have to wait for what is in flight.
    boolean isBusy() {
        return inFlightCount >= limits.maxReadsDuringWrites() || held != null;
    }

    boolean isIdle() {
        return inFlightCount == 0
                && held == null
                && queue.loadCount() == 0
                && stepPump.isIdle()
                && rangesInFlight.isEmpty()
                && heldRange == null
                && !queue.hasRanges();
    }

    int waiting() {
        return queue.loadCount();
    }

    int inFlightCount() {
        return inFlightCount;
    }

    long loaded() {
        return loaded.sum();
    }

    long loadedBytes() {
        return loadedBytes.sum();
    }

    long partsRead() {
        return partsRead.sum();
    }

    long partBytes() {
        return partBytes.sum();
    }

    long failures() {
        return failures.sum();
    }

    long cancelled() {
        return cancelled.sum();
    }

    /// How long it takes to read the given number of bytes more, after what is on its way and what waits; 0 while
    /// nothing is known.
    double estimateNanos(long moreBytes) {
        long each = loadedBytes() / Math.max(1, loaded());
        return throughput.estimateNanos(moreBytes + each * (inFlightCount + queue.loadCount()));
    }

    TierTransferStats.Latency latency() {
        return latencyRecorder.summary();
    }

    /// How long reads of a tier take, from those of the last while: a fixed time for each run of reads, and a
    /// time for each byte.
    ///
    /// A run lasts from the first read after a pause to the last one that was under way with others, or
    /// until it has [#MAX_RUN_READS] reads. A line is laid through the times of the runs over their
    /// bytes, by least squares; older runs count for less and less.
    ///
    /// **Threads.** Written by the tier worker's thread; [#estimateNanos] by any.
    static final class ReadThroughput {

        /// Runs before anything is said.
        private static final int MIN_RUNS = 4;

        private static final int MAX_RUN_READS = 64;

        /// Weight that earlier runs keep when a run is added: the last 32 runs count for two thirds.
        private static final double DECAY = 1 - 1.0 / 32;

        private volatile LinearModel model = new LinearModel(0, 0);
        private long runStartNanos;
        private long runBytes;
        private int runReads;
        private int runsSeen;
        private double runs;
        private double bytes;
        private double squares;
        private double nanos;
        private double products;

        /// @param fixedNanos for a run
        /// @param nanosPerByte beside
        private record LinearModel(double fixedNanos, double nanosPerByte) {}

        /// A read is handed to the tier.
        ///
        /// @param others that are under way
        void onReadStarted(int others, long nowNanos) {
            if (others == 0) {
                startRun(nowNanos);
            }
        }

        /// A read has ended well.
        ///
        /// @param others that are still under way
        void onReadEnded(long readBytes, int others, long nowNanos) {
            runBytes += readBytes;
            runReads++;
            if (others == 0 || runReads == MAX_RUN_READS) {
                addRun((double) (nowNanos - runStartNanos));
                startRun(nowNanos);
            }
        }

        private void startRun(long nowNanos) {
            runStartNanos = nowNanos;
            runBytes = 0;
            runReads = 0;
        }

        private void addRun(double runNanos) {
            double size = (double) runBytes;
            runs = DECAY * runs + 1;
            bytes = DECAY * bytes + size;
            squares = DECAY * squares + size * size;
            nanos = DECAY * nanos + runNanos;
            products = DECAY * products + size * runNanos;
            if (++runsSeen >= MIN_RUNS) {
                model = fitModel();
            }
        }

        /// When the runs are of one size, or the line would begin below nothing, all time counts by bytes.
        private LinearModel fitModel() {
            double spread = runs * squares - bytes * bytes;
            double slope = spread > 1e-6 * bytes * bytes ? (runs * products - bytes * nanos) / spread : -1;
            double fixed = (nanos - slope * bytes) / runs;
            return slope > 0 && fixed >= 0 ? new LinearModel(fixed, slope) : new LinearModel(0, nanos / bytes);
        }

        /// How long reading the given number of bytes takes from the first to the last, 0 while nothing is known.
        double estimateNanos(long readBytes) {
            LinearModel known = model;
            return known.fixedNanos + known.nanosPerByte * readBytes;
        }
    }
}
