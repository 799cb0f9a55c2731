package io.kvcache.bench.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.stream.LongStream;

/// Keeps a block device busy with a workload, as the disk's thread does: fill the queue, wait, fill it again.
final class DeviceLoadGenerator {

    /// A disk that lets nothing end for this long is broken.
    private static final long TIMEOUT_NANOS = 30_000_000_000L;

    private final IoWorkload work;
    private final BlockDevice device;
    private final MemorySegment pool;
    private final AccessPattern.OffsetSequence offsetSequence;
    private final QueueDepthMeter meter;
    private final Deque<Long> freeSlots = new ArrayDeque<>();
    private IoOutcome outcome = IoOutcome.DONE;
    private long queued;

    private DeviceLoadGenerator(IoWorkload work, BlockDevice device, MemorySegment pool, long slots, long nowNanos) {
        this.work = work;
        this.device = device;
        this.pool = pool;
        this.offsetSequence = work.pattern().offsets(work.fileBytes() / work.pieceBytes());
        this.meter = new QueueDepthMeter(nowNanos);
        LongStream.range(0, slots).forEach(freeSlots::add);
    }

    /// Moves it all, in the calling thread, named [ThreadCpuTimes#LOAD_THREAD].
    ///
    /// @param slots pieces of the pool that are used in turns, at least as many as the queue is deep
    /// @throws IOException when the device could not
    static TransferResult run(IoWorkload work, BlockDevice device, MemorySegment pool, long slots) throws IOException {
        ThreadCpuTimes before = ThreadCpuTimes.atStart();
        long start = System.nanoTime();
        DeviceLoadGenerator load = new DeviceLoadGenerator(work, device, pool, slots, start);
        double inFlight = load.moveAll();
        double seconds = (System.nanoTime() - start) / 1e9;
        double cpuSeconds = ThreadCpuTimes.atEnd().secondsSince(before);
        return new TransferResult(work.totalBytes(), seconds, cpuSeconds, inFlight, device.describe());
    }

    /// @return requests on their way on average, until there was nothing more to queue
    private double moveAll() throws IOException {
        while (queued < work.pieces()) {
            fillQueue();
            await();
        }
        double inFlight = meter.averageDepth(System.nanoTime());
        while (device.inFlight() > 0) {
            await();
        }
        return inFlight;
    }

    private void fillQueue() {
        while (queued < work.pieces() && device.inFlight() < work.depth()) {
            long slot = freeSlots.remove();
            MemorySegment piece = pool.asSlice(slot * work.pieceBytes(), work.pieceBytes());
            long offset = offsetSequence.next() * work.pieceBytes();
            boolean taken =
                    work.pattern().isWrite() ? device.write(piece, offset, slot) : device.read(piece, offset, slot);
            assert taken : "the queue is not deeper than the device's";
            meter.onQueued(System.nanoTime());
            queued++;
        }
    }

    private void await() throws IOException {
        int delivered = device.await(this::onCompleted, TIMEOUT_NANOS);
        if (delivered == 0 || !outcome.isDone()) {
            throw new IOException(
                    "%s: %s".formatted(work.file(), delivered == 0 ? "nothing ends within 30 s" : outcome.cause()));
        }
    }

    private void onCompleted(long slot, IoOutcome reached) {
        meter.onCompleted(System.nanoTime());
        freeSlots.add(slot);
        outcome = reached.isDone() ? outcome : reached;
    }
}
