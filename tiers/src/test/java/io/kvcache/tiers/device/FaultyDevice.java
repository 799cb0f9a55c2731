package io.kvcache.tiers.device;

import io.kvcache.tiers.device.Request.Operation;
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
/// An operation is carried out on the device below when its latency is over, all of it within [#poll]; so the
/// order is that of the virtual clock, and [#await] cannot wait, because only the test moves that clock.
/// Writes may be lost at a [#crash] until a sync.
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
    private final Spans spans;
    private final FaultyTransfers transfers;
    private final Tenure tenure = new Tenure(NAME);
    private final Queue<Pending> pending =
            new PriorityQueue<>(Comparator.comparingLong(Pending::due).thenComparingLong(Pending::sequence));
    private long sequence;
    private boolean hanging;

    /// An operation on its way.
    ///
    /// @param due the tick at which it ends
    /// @param sequence number in the order of queueing
    record Pending(Operation operation, @Nullable MemorySegment segment, Span span, long due, long sequence) {

        long tag() {
            return span.tag();
        }
    }

    /// What it works on, and the tag that comes back.
    ///
    /// @param covered what a sync makes durable, for [UnflushedPages]
    record Span(long offset, long length, long tag, long covered) {}

    /// @param below a device that nobody else uses
    /// @param seed of all that is random
    /// @param ticks the virtual clock
    public FaultyDevice(BlockDevice below, FaultRates rates, long seed, LongSupplier ticks) {
        this.below = below;
        this.ticks = ticks;
        this.spans = new Spans(below.size());
        this.transfers = new FaultyTransfers(below, rates, seed);
    }

    /// How often a fault was injected.
    public long count(Fault fault) {
        return transfers.count(fault);
    }

    /// From here on faults are as often as these say.
    public void rates(FaultRates rates) {
        transfers.rates(rates);
    }

    /// From here on nothing ends.
    public void hang() {
        hanging = true;
    }

    /// Ends [#hang], and has those operations end at the next poll that [Fault#HANG] befell.
    public void resume() {
        hanging = false;
        List<Pending> all = new ArrayList<>(pending);
        pending.clear();
        for (Pending one : all) {
            long due = one.due == NEVER ? ticks.getAsLong() : one.due;
            pending.add(new Pending(one.operation, one.segment, one.span, due, one.sequence));
        }
    }

    /// Whether every write meets ENOSPC from here on.
    public void full(boolean full) {
        transfers.full(full);
    }

    /// Power is lost: what is on its way may or may not have been done, some of what is not durable is gone,
    /// and this object is closed.
    ///
    /// @return the device below, for the next start
    public BlockDevice crash() {
        tenure.visit();
        pending.stream()
                .filter(one -> one.operation == Operation.WRITE)
                .sorted(Comparator.comparingLong(Pending::sequence))
                .forEach(transfers::maybeWrite);
        transfers.loseSome();
        pending.clear();
        tenure.end();
        return below;
    }

    @Override
    public long size() {
        return spans.size();
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
        spans.requireTarget(target, offset);
        return queue(Operation.READ, target, new Span(offset, target.byteSize(), tag, 0));
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        spans.requireSource(source, offset);
        return queue(Operation.WRITE, source, new Span(offset, source.byteSize(), tag, 0));
    }

    @Override
    public boolean sync(long tag) {
        return queue(Operation.SYNC, null, new Span(0, 0, tag, transfers.seal()));
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        spans.requireRange(offset, length);
        return queue(Operation.DISCARD, null, new Span(offset, length, tag, 0));
    }

    private boolean queue(Operation operation, @Nullable MemorySegment segment, Span span) {
        tenure.use();
        if (pending.size() == depth()) {
            return false;
        }
        long due = transfers.hangs() ? NEVER : ticks.getAsLong() + transfers.latencyTicks();
        return pending.add(new Pending(operation, segment, span, due, sequence++));
    }

    @Override
    public void submit() {
        tenure.use();
    }

    @Override
    public int poll(CompletionSink sink) {
        tenure.use();
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
        tenure.startDelivery();
        try {
            int limit = pending.size();
            int delivered = 0;
            Pending next;
            while (delivered < limit && (next = pending.peek()) != null && next.due <= until) {
                pending.remove();
                delivered++;
                sink.completed(next.tag(), transfers.carryOut(next));
            }
            return delivered;
        } finally {
            tenure.endDelivery();
        }
    }

    @Override
    public void register(MemorySegment pool) {
        tenure.visit();
        if (!pending.isEmpty()) {
            throw new IllegalStateException(NAME + " registers memory only when nothing is on its way");
        }
        below.register(pool);
    }

    @Override
    public String describe() {
        return "faulty " + below.describe();
    }

    @Override
    public void close() {
        tenure.requireClosable();
        deliver((_, _) -> {}, hanging ? -1 : NEVER - 1);
        if (!pending.isEmpty()) {
            throw new IllegalStateException("%s stays open: %d operations hang".formatted(NAME, pending.size()));
        }
        tenure.end();
        below.close();
    }
}
