package io.kvcache.bench.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.stream.LongStream;

/// Keeps a block device busy with a workload, as the disk's thread does: fill the queue, wait, fill it again.
final class DeviceLoad {

    /// A disk that lets nothing end for this long is broken.
    private static final long LIMIT_NANOS = 30_000_000_000L;

    private final Workload work;
    private final BlockDevice device;
    private final MemorySegment pool;
    private final Pattern.Order order;
    private final QueueMeter meter;
    private final Deque<Long> freeSlots = new ArrayDeque<>();
    private IoOutcome outcome = IoOutcome.DONE;
    private long queued;

    private DeviceLoad(Workload work, BlockDevice device, MemorySegment pool, long slots, long nowNanos) {
        this.work = work;
        this.device = device;
        this.pool = pool;
        this.order = work.pattern().over(work.fileBytes() / work.pieceBytes());
        this.meter = new QueueMeter(nowNanos);
        LongStream.range(0, slots).forEach(freeSlots::add);
    }

    /// Moves it all, in the calling thread, named [ThreadCpu#NAME].
    ///
    /// @param slots pieces of the pool that are used in turns, at least as many as the queue is deep
    /// @throws IOException when the device could not
    static Traffic run(Workload work, BlockDevice device, MemorySegment pool, long slots) throws IOException {
        ThreadCpu before = ThreadCpu.starting();
        long start = System.nanoTime();
        DeviceLoad load = new DeviceLoad(work, device, pool, slots, start);
        double inFlight = load.moveAll();
        double seconds = (System.nanoTime() - start) / 1e9;
        double cpuSeconds = ThreadCpu.ending().secondsSince(before);
        return new Traffic(work.totalBytes(), seconds, cpuSeconds, inFlight, device.describe());
    }

    /// @return requests on their way on average, until there was nothing more to queue
    private double moveAll() throws IOException {
        while (queued < work.pieces()) {
            fillQueue();
            await();
        }
        double inFlight = meter.average(System.nanoTime());
        while (device.inFlight() > 0) {
            await();
        }
        return inFlight;
    }

    private void fillQueue() {
        while (queued < work.pieces() && device.inFlight() < work.depth()) {
            long slot = freeSlots.remove();
            MemorySegment piece = pool.asSlice(slot * work.pieceBytes(), work.pieceBytes());
            long offset = order.next() * work.pieceBytes();
            boolean taken =
                    work.pattern().writes() ? device.write(piece, offset, slot) : device.read(piece, offset, slot);
            assert taken : "the queue is not deeper than the device's";
            meter.queued(System.nanoTime());
            queued++;
        }
    }

    private void await() throws IOException {
        int delivered = device.await(this::completed, LIMIT_NANOS);
        if (delivered == 0 || !outcome.isDone()) {
            throw new IOException(
                    "%s: %s".formatted(work.file(), delivered == 0 ? "nothing ends within 30 s" : outcome.cause()));
        }
    }

    private void completed(long slot, IoOutcome reached) {
        meter.delivered(System.nanoTime());
        freeSlots.add(slot);
        outcome = reached.isDone() ? outcome : reached;
    }
}
