package io.kvcache.tiers.simulation;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.device.BlockDevice.IoOperation;
import io.kvcache.tiers.device.OwnerCheck;
import io.kvcache.tiers.device.SpanValidator;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// A device that fails the way disks do, as often as its [FaultRates] say, the same way for the same seed.
///
/// [#poll] carries out an operation on the device below once its latency has passed on the virtual clock. The
/// caller moves that clock, so [#await] never waits. A [#crash] may lose writes that were not synced.
///
/// **Ownership.** Closing it closes the device below. A crash leaves that open: it is the disk as the next
/// start finds it.
///
/// **Threads.** One.
public final class FaultyDevice implements BlockDevice {

    private static final String NAME = "faulty device";
    private static final long NEVER = Long.MAX_VALUE;

    private final BlockDevice below;
    private final LongSupplier ticks;
    private final SpanValidator spanValidator;
    private final FaultInjector transfers;
    private final OwnerCheck ownerCheck = new OwnerCheck(NAME);
    private final Queue<Pending> pending =
            new PriorityQueue<>(Comparator.comparingLong(Pending::due).thenComparingLong(Pending::sequence));
    private long sequence;
    private boolean hanging;

    /// An operation on its way.
    ///
    /// @param due the tick at which it ends
    /// @param sequence number in the order of queueing
    record Pending(
            IoOperation operation,
            @Nullable MemorySegment segment,
            OperationRange operationRange,
            long due,
            long sequence) {

        long tag() {
            return operationRange.tag();
        }
    }

    /// Range of an operation, and the tag that comes back.
    ///
    /// @param covered generation that a sync makes durable, for [FaultInjector.UnflushedPages]
    record OperationRange(long offset, long length, long tag, long covered) {}

    /// @param below a device without another user
    /// @param seed of all that is random
    /// @param ticks the virtual clock
    public FaultyDevice(BlockDevice below, FaultRates rates, long seed, LongSupplier ticks) {
        this.below = below;
        this.ticks = ticks;
        this.spanValidator = new SpanValidator(below.size());
        this.transfers = new FaultInjector(below, rates, seed);
    }

    /// How often a fault was injected.
    public long count(Fault fault) {
        return transfers.count(fault);
    }

    /// Changes the rates from now on.
    public void setRates(FaultRates rates) {
        transfers.setRates(rates);
    }

    /// Makes every operation hang from now on.
    public void hangAll() {
        hanging = true;
    }

    /// Ends [#hangAll]; operations that [FaultRates.Fault#HANG] struck end at the next poll.
    public void resume() {
        hanging = false;
        List<Pending> all = new ArrayList<>(pending);
        pending.clear();
        for (Pending one : all) {
            long due = one.due == NEVER ? ticks.getAsLong() : one.due;
            pending.add(new Pending(one.operation, one.segment, one.operationRange, due, one.sequence));
        }
    }

    /// Sets whether every write fails with ENOSPC from now on.
    public void setFull(boolean full) {
        transfers.setFull(full);
    }

    /// Cuts the power and closes this device: each operation in flight may or may not have happened, and some
    /// writes that were not synced are lost.
    ///
    /// @return the device below, as the next start finds it
    public BlockDevice crash() {
        ownerCheck.requireNotForeign();
        pending.stream()
                .filter(one -> one.operation == IoOperation.WRITE)
                .sorted(Comparator.comparingLong(Pending::sequence))
                .forEach(transfers::maybeWrite);
        transfers.loseUnflushed();
        pending.clear();
        ownerCheck.markClosed();
        return below;
    }

    @Override
    public long size() {
        return spanValidator.size();
    }

    @Override
    public int depth() {
        return below.depth();
    }

    @Override
    public int inFlight() {
        return pending.size();
    }

    @Override
    public boolean read(MemorySegment target, long offset, long tag) {
        spanValidator.requireTarget(target, offset);
        return queue(IoOperation.READ, target, new OperationRange(offset, target.byteSize(), tag, 0));
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        spanValidator.requireSource(source, offset);
        return queue(IoOperation.WRITE, source, new OperationRange(offset, source.byteSize(), tag, 0));
    }

    @Override
    public boolean sync(long tag) {
        return queue(IoOperation.SYNC, null, new OperationRange(0, 0, tag, transfers.beginSync()));
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        spanValidator.requireRange(offset, length);
        return queue(IoOperation.DISCARD, null, new OperationRange(offset, length, tag, 0));
    }

    private boolean queue(IoOperation operation, @Nullable MemorySegment segment, OperationRange operationRange) {
        ownerCheck.claimOrRequireOwner();
        if (pending.size() == depth()) {
            return false;
        }
        long due = transfers.shouldHang() ? NEVER : ticks.getAsLong() + transfers.latencyTicks();
        return pending.add(new Pending(operation, segment, operationRange, due, sequence++));
    }

    @Override
    public void submit() {
        ownerCheck.claimOrRequireOwner();
    }

    @Override
    public int poll(CompletionSink sink) {
        ownerCheck.claimOrRequireOwner();
        return deliver(sink, hanging ? -1 : ticks.getAsLong());
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        return poll(sink);
    }

    /// Nothing: it never waits.
    @Override
    public void wake() {}

    private int deliver(CompletionSink sink, long until) {
        ownerCheck.startDelivery();
        try {
            int limit = pending.size();
            int delivered = 0;
            Pending next;
            while (delivered < limit && (next = pending.peek()) != null && next.due <= until) {
                pending.remove();
                delivered++;
                sink.completed(next.tag(), transfers.execute(next));
            }
            return delivered;
        } finally {
            ownerCheck.endDelivery();
        }
    }

    @Override
    public void register(MemorySegment pool) {
        ownerCheck.requireNotForeign();
        if (!pending.isEmpty()) {
            throw new IllegalStateException(NAME + " registers memory only when nothing is on its way");
        }
        below.register(pool);
    }

    @Override
    public String lossCause() {
        return below.lossCause();
    }

    @Override
    public String describe() {
        return "faulty " + below.describe();
    }

    @Override
    public void close() {
        ownerCheck.requireClosable();
        deliver((_, _) -> {}, hanging ? -1 : NEVER - 1);
        if (!pending.isEmpty()) {
            throw new IllegalStateException("%s stays open: %s operations hang".formatted(NAME, pending.size()));
        }
        ownerCheck.markClosed();
        below.close();
    }
}
