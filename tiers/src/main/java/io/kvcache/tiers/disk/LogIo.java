package io.kvcache.tiers.disk;

import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// All input and output of a log: operations in flight, operations that wait for a place in the device's queue,
/// and the state of the log, which failures change.
///
/// Blocks that a caller waits for go first, and a quarter of the device's depth is theirs alone. The rest goes in
/// the order of the requests. The users of the queues limit their length.
///
/// It counts failures, and ends the log when a device fails too often, hangs, is full, or cannot sync. After a
/// failed sync nothing is known of the writes before it, and a later one that succeeds proves nothing (Rebello et
/// al.: "Can Applications Recover from fsync Failures?", ATC 2020). So one is enough.
final class LogIo {

    /// Bytes of loads handed to the device at a time, if one is not larger. Where the kernel copies the bytes
    /// itself, as from a page cache, they are then still in a cache of the processor when they are verified. That
    /// makes the verification three times as fast.
    private static final long LOAD_BATCH_BYTES = 1 << 20;

    /// Longest time between two ticks that counts against an operation. A thread that owns a log ticks it some
    /// hundred times a second. A longer pause means that the process stood still, as a frozen machine or a stopped
    /// container does, and could not take the device's answers.
    private static final long MAX_STEP_NANOS = 1_000_000_000;

    /// How often it looks whether the device still keeps what it takes, besides at each sync.
    private static final long LOSS_CHECK_NANOS = 1_000_000_000;

    private static final long LOG_PAUSE_NANOS = 5_000_000_000L;

    private static final Logger LOG = System.getLogger(LogIo.class.getName());

    private static final Logger STATE_LOG = System.getLogger(DiskLog.class.getName());

    private static final IoOutcome REFUSED = new IoOutcome(IoOutcome.Kind.FAILED, "the log has failed");

    /// Tries of a write of metadata: a disk that fails three times at one place will not do better the fourth
    /// time.
    private static final int ATTEMPTS = 3;

    /// Callback at the end of an operation.
    @FunctionalInterface
    interface Completion {
        void complete(IoOutcome outcome);
    }

    /// Callback at the end of a write of metadata.
    @FunctionalInterface
    interface WriteCallback {
        void onWritten(boolean done);
    }

    /// Callback at the end of a sync.
    @FunctionalInterface
    interface SyncCallback {
        void onSynced(boolean durable);
    }

    private final BlockDevice device;
    private final LogLimits limits;
    private TierState state = TierState.OPENING;
    private String cause = "";
    private final Queue<DeviceOperation> loads = new ArrayDeque<>();
    private final Queue<DeviceOperation> others = new ArrayDeque<>();
    private final Deque<DeviceOperation> oldestFirst = new ArrayDeque<>();
    private final @Nullable DeviceOperation[] pendingByTag;
    private final int[] freeTags;
    private int freeCount;
    private final int maxOthersInFlight;
    private int othersInFlight;
    private final Map<WriteKind, Long> written = new EnumMap<>(WriteKind.class);
    private long failures;
    private int failuresInARow;
    private long nowNanos;
    private long awakeNanos;
    private long lossCheckedNanos;
    private boolean clockStarted;
    private List<SyncCallback> syncWaiters = new ArrayList<>();
    private List<SyncCallback> coveredBySync = new ArrayList<>();
    private boolean syncInFlight;

    LogIo(BlockDevice device, LogLimits limits) {
        this.device = device;
        this.limits = limits;
        this.pendingByTag = new DeviceOperation[device.depth()];
        this.freeTags = new int[device.depth()];
        for (int tag = 0; tag < freeTags.length; tag++) {
            freeTags[freeCount++] = tag;
        }
        this.maxOthersInFlight = Math.max(1, device.depth() - Math.ceilDiv(device.depth(), 4));
    }

    TierState state() {
        return state;
    }

    String cause() {
        return cause;
    }

    /// Returns whether anything new may be written.
    boolean canWrite() {
        return state == TierState.SERVING;
    }

    /// Returns whether blocks may be read.
    boolean canRead() {
        return state == TierState.SERVING || state == TierState.READ_ONLY;
    }

    /// Returns whether writing has ended for good.
    boolean isWritingHalted() {
        return state != TierState.SERVING && state != TierState.OPENING;
    }

    void markServing() {
        if (state == TierState.OPENING) {
            transitionTo(TierState.SERVING, "");
        }
    }

    void markRefused(String why) {
        transitionTo(TierState.REFUSED, why);
    }

    /// Ends writing for good; a log that is still opening fails.
    void stopWriting(String why) {
        if (state == TierState.SERVING) {
            transitionTo(TierState.READ_ONLY, why);
        } else if (state == TierState.OPENING) {
            markFailed(why);
        }
    }

    private void markFailed(String why) {
        if (state != TierState.FAILED && state != TierState.STOPPED) {
            transitionTo(TierState.FAILED, why);
        }
    }

    void markStopped() {
        if (!state.equals(TierState.FAILED)) {
            transitionTo(TierState.STOPPED, "");
        }
    }

    private void transitionTo(TierState next, String why) {
        Level level = why.isEmpty() ? Level.DEBUG : Level.WARNING;
        STATE_LOG.log(
                level,
                "The log of a disk tier turns from {1} to {0}: {2}",
                next,
                state,
                why.isEmpty() ? "as asked" : why);
        state = next;
        cause = why;
    }

    /// Reads a block that a caller waits for.
    void load(MemorySegment target, long offset, Completion completion) {
        loads.add(new DeviceOperation(
                (at, tag) -> at.read(target, offset, tag), OperationType.LOAD, null, target.byteSize(), completion));
    }

    /// Reads data for the log itself.
    void read(MemorySegment target, long offset, Completion completion) {
        others.add(new DeviceOperation(
                (at, tag) -> at.read(target, offset, tag), OperationType.READ, null, 0, completion));
    }

    /// Writes once; see [#write] for metadata.
    void writeOnce(WriteKind kind, MemorySegment source, long offset, Completion completion) {
        others.add(new DeviceOperation(
                (at, tag) -> at.write(source, offset, tag), OperationType.WRITE, kind, source.byteSize(), completion));
    }

    /// Gives a span back to the file system or the disk.
    void discard(long offset, long length, Completion completion) {
        others.add(new DeviceOperation(
                (at, tag) -> at.discard(offset, length, tag), OperationType.DISCARD, null, 0, completion));
    }

    /// Returns whether nothing waits and nothing is in flight, syncs that were not begun included.
    boolean isIdle() {
        return isDeviceIdle() && !syncInFlight && syncWaiters.isEmpty();
    }

    /// Returns whether no operation waits for the device or is in flight.
    boolean isDeviceIdle() {
        return loads.isEmpty() && others.isEmpty() && freeCount == freeTags.length;
    }

    long written(WriteKind kind) {
        return written.getOrDefault(kind, 0L);
    }

    long failures() {
        return failures;
    }

    /// Hands operations to the device, and follows up all that have ended.
    ///
    /// @param waitNanos the longest wait for the first to end; 0 for none
    /// @return how many ended
    int poll(long now, long waitNanos) {
        advanceClock(now);
        int ended = startLoadBatches();
        start();
        ended += waitNanos > 0 && ended == 0 ? device.await(this::completed, waitNanos) : device.poll(this::completed);
        checkHung();
        if (awakeNanos - lossCheckedNanos >= LOSS_CHECK_NANOS) {
            checkLoss();
        }
        return ended + (state == TierState.FAILED ? rejectQueued() : 0);
    }

    /// Advances the clock of operations in flight, by the time that the process was awake.
    private void advanceClock(long now) {
        long step = clockStarted ? now - nowNanos : 0;
        clockStarted = true;
        nowNanos = now;
        awakeNanos += Math.min(step, Math.min(MAX_STEP_NANOS, Math.max(1, limits.hangNanos() / 4)));
        if (step >= LOG_PAUSE_NANOS && freeCount < freeTags.length) {
            LOG.log(
                    Level.WARNING,
                    "The process stood still for {0} ms, or the thread of this disk did; {1} operations on their way"
                            + " have that much longer to end",
                    step / 1_000_000,
                    freeTags.length - freeCount);
        }
    }

    /// Hands queued operations to the device.
    void start() {
        start(loads, freeTags.length);
        start(others, maxOthersInFlight - othersInFlight);
        device.submit();
    }

    /// Hands loads over in batches, as long as there is more than one, and follows up ended operations after each.
    ///
    /// @return how many ended
    private int startLoadBatches() {
        int ended = 0;
        while (startLoadBatch()) {
            device.submit();
            ended += device.poll(this::completed);
        }
        return ended;
    }

    /// Returns whether more could be handed over.
    private boolean startLoadBatch() {
        for (long bytes = 0; bytes < LOAD_BATCH_BYTES && freeCount > 0 && !loads.isEmpty(); ) {
            bytes += loads.element().bytes;
            start(loads.remove());
        }
        return freeCount > 0 && !loads.isEmpty();
    }

    private void start(Queue<DeviceOperation> queue, int atMost) {
        for (int left = atMost; left > 0 && freeCount > 0 && !queue.isEmpty(); left--) {
            start(queue.remove());
        }
    }

    private void start(DeviceOperation next) {
        int tag = freeTags[--freeCount];
        next.sinceNanos = awakeNanos;
        pendingByTag[tag] = next;
        oldestFirst.add(next);
        othersInFlight += next.type == OperationType.LOAD ? 0 : 1;
        if (!next.submitter.submit(device, tag)) {
            throw new IllegalStateException(
                    "the device refused an operation with %s of %s in flight; give each log a device of its own"
                            .formatted(freeTags.length - freeCount, freeTags.length));
        }
    }

    private void completed(long tag, IoOutcome outcome) {
        DeviceOperation deviceOperation = Objects.requireNonNull(pendingByTag[(int) tag], "an operation ended twice");
        pendingByTag[(int) tag] = null;
        freeTags[freeCount++] = (int) tag;
        deviceOperation.over = true;
        othersInFlight -= deviceOperation.type == OperationType.LOAD ? 0 : 1;
        checkOutcome(deviceOperation, outcome);
        deviceOperation.completion.complete(outcome);
    }

    private void checkOutcome(DeviceOperation deviceOperation, IoOutcome outcome) {
        switch (outcome.kind()) {
            case DONE -> {
                failuresInARow = 0;
                if (deviceOperation.writeKind != null) {
                    written.merge(deviceOperation.writeKind, deviceOperation.bytes, Long::sum);
                }
            }
            case NO_SPACE -> stopWriting("no space on the device, " + outcome.cause());
            case UNSUPPORTED -> {}
            case FAILED -> onFailure(deviceOperation, outcome);
        }
    }

    private void onFailure(DeviceOperation deviceOperation, IoOutcome outcome) {
        failures++;
        failuresInARow++;
        if (deviceOperation.type == OperationType.SYNC) {
            stopWriting("a sync failed, " + outcome.cause());
        }
        if (failuresInARow >= limits.failures()) {
            markFailed("%s operations failed in a row, the last by %s".formatted(failuresInARow, outcome.cause()));
        }
    }

    /// Ends the writing if the device does not keep it: a sync that is done proves nothing then.
    ///
    /// @return whether it is kept
    private boolean checkLoss() {
        lossCheckedNanos = awakeNanos;
        String lost = device.lossCause();
        if (!lost.isEmpty() && !isWritingHalted()) {
            stopWriting(lost);
        }
        return lost.isEmpty();
    }

    /// Fails the log if an operation takes too long.
    private void checkHung() {
        DeviceOperation oldest;
        while ((oldest = oldestFirst.peek()) != null && oldest.over) {
            oldestFirst.remove();
        }
        if (oldest != null && awakeNanos - oldest.sinceNanos > limits.hangNanos()) {
            markFailed("an operation has not ended after %s ms".formatted(limits.hangNanos() / 1_000_000));
        }
    }

    /// Ends the operations that the device was not given yet.
    private int rejectQueued() {
        int waiting = loads.size() + others.size();
        for (int i = 0; i < waiting; i++) {
            DeviceOperation next = loads.isEmpty() ? others.remove() : loads.remove();
            next.completion.complete(REFUSED);
        }
        return waiting;
    }

    /// Makes durable all writes that have ended by now. Callers share syncs: at most one is in flight, and all
    /// requests meanwhile share the next, since a sync covers only the writes before it.
    void sync(SyncCallback callback) {
        syncWaiters.add(callback);
    }

    /// Begins a sync when one is wanted and none is in flight.
    void startSync() {
        if (syncInFlight || syncWaiters.isEmpty()) {
            return;
        }
        coveredBySync = syncWaiters;
        syncWaiters = new ArrayList<>();
        if (isWritingHalted()) {
            notifyCovered(false);
        } else {
            syncInFlight = true;
            others.add(new DeviceOperation(BlockDevice::sync, OperationType.SYNC, null, 0, this::onSynced));
        }
    }

    private void onSynced(IoOutcome outcome) {
        syncInFlight = false;
        notifyCovered(outcome.isDone() && checkLoss());
    }

    private void notifyCovered(boolean durable) {
        for (SyncCallback each : coveredBySync) {
            each.onSynced(durable);
        }
    }

    /// Writes metadata; tries again when that fails.
    void write(WriteKind kind, MemorySegment source, long offset, WriteCallback callback) {
        write(kind, source, offset, ATTEMPTS - 1, callback);
    }

    private void write(WriteKind kind, MemorySegment source, long offset, int retries, WriteCallback callback) {
        writeOnce(kind, source, offset, outcome -> {
            if (outcome.kind() == IoOutcome.Kind.FAILED && retries > 0 && !isWritingHalted()) {
                write(kind, source, offset, retries - 1, callback);
            } else {
                callback.onWritten(outcome.isDone());
            }
        });
    }

    /// Single pages for heads and footers in flight. When none is free, the caller tries again in a later tick.
    static final class PagePool {

        /// More heads in flight than any disk makes use of.
        static final int PAGES = 64;

        private final Deque<MemorySegment> free = new ArrayDeque<>(PAGES);

        /// @param memory [#PAGES] pages
        PagePool(MemorySegment memory) {
            for (int i = 0; i < PAGES; i++) {
                free.add(memory.asSlice((long) i * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES));
            }
        }

        @Nullable
        MemorySegment acquire() {
            return free.poll();
        }

        void release(MemorySegment page) {
            free.push(page);
            assert free.size() <= PAGES : "a page was given back twice";
        }
    }

    /// Kind of an operation, with the effect of its failure and its priority.
    private enum OperationType {
        /// A read that a caller waits for.
        LOAD,
        /// A read for the log itself.
        READ,
        WRITE,
        SYNC,
        DISCARD
    }

    /// One operation of the device, from its request to its end, with its callback.
    private static final class DeviceOperation {

        /// Hands it to the device, which may be full.
        final Submitter submitter;
        final OperationType type;
        /// Purpose of a write, null for anything else.
        final @Nullable WriteKind writeKind;
        /// Bytes of a load or a write.
        final long bytes;
        final Completion completion;
        /// Time when the device took it.
        long sinceNanos;
        boolean over;

        private DeviceOperation(
                Submitter submitter,
                OperationType type,
                @Nullable WriteKind writeKind,
                long bytes,
                Completion completion) {
            this.submitter = submitter;
            this.type = type;
            this.writeKind = writeKind;
            this.bytes = bytes;
            this.completion = completion;
        }

        /// Hands an operation to a device.
        @FunctionalInterface
        private interface Submitter {
            boolean submit(BlockDevice device, long tag);
        }
    }
}
