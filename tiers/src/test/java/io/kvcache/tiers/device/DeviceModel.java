package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;

import io.kvcache.core.check.BlockContent;
import io.kvcache.tiers.device.BlockDevice.IoOperation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;

/// Random operations on a device, many at a time, compared with an array of bytes.
///
/// Spans on their way never overlap, as the contract of [BlockDevice] asks.
final class DeviceModel {

    private static final int MAX_PAGES = 24;
    private static final long AWAIT_NANOS = 1_000_000_000;
    private static final int MAX_FRUITLESS_AWAITS = 60;

    private final BlockDevice device;
    private final SplittableRandom random;
    private final byte[] expected;
    private final Deque<MemorySegment> free = new ArrayDeque<>();
    private final Map<Long, Started> started = new HashMap<>();
    private long tags;
    private long completed;

    /// @param whole the segment of which the operation uses the first `length` bytes
    private record Started(IoOperation operation, MemorySegment whole, long offset, long length) {

        MemorySegment segment() {
            return whole.asSlice(0, length);
        }

        boolean overlaps(long from, long bytes) {
            return from < offset + length && offset < from + bytes;
        }
    }

    /// @param arena for segments; a pool of half of them is registered
    DeviceModel(BlockDevice device, Arena arena, long seed) {
        this.device = device;
        this.random = new SplittableRandom(seed);
        this.expected = new byte[(int) device.size()];
        int segments = device.depth();
        long segmentBytes = (long) MAX_PAGES * ALIGNMENT;
        MemorySegment pool = arena.allocate(Math.max(1, segments / 2) * segmentBytes, ALIGNMENT);
        device.register(pool);
        for (int i = 0; i < segments; i++) {
            boolean pooled = i < segments / 2;
            free.add(pooled ? pool.asSlice(i * segmentBytes, segmentBytes) : arena.allocate(segmentBytes, ALIGNMENT));
        }
    }

    /// Runs until so many operations were started and all have ended; a start that would overlap is skipped.
    ///
    /// @return how many completed
    long run(int operations) {
        while (tags < operations) {
            startOne();
            if (random.nextInt(4) == 0) {
                device.poll(this::ended);
            }
            if (device.inFlight() == device.depth()) {
                awaitOne();
            }
        }
        while (device.inFlight() > 0) {
            awaitOne();
        }
        return completed;
    }

    private void awaitOne() {
        for (int attempt = 0; attempt < MAX_FRUITLESS_AWAITS; attempt++) {
            if (device.await(this::ended, AWAIT_NANOS) > 0) {
                return;
            }
        }
        throw new AssertionError("%d operations do not end".formatted(device.inFlight()));
    }

    private void startOne() {
        long length = (1L + random.nextInt(MAX_PAGES)) * ALIGNMENT;
        long offset = random.nextLong((expected.length - length) / ALIGNMENT + 1) * ALIGNMENT;
        if (started.values().stream().anyMatch(other -> other.overlaps(offset, length))) {
            return;
        }
        Started one = new Started(operation(), free.remove(), offset, length);
        long tag = tags++;
        if (one.operation == IoOperation.WRITE) {
            new BlockContent(random.nextLong()).fill(one.segment());
        }
        boolean accepted = switch (one.operation) {
            case READ -> device.read(one.segment(), offset, tag);
            case WRITE -> device.write(one.segment(), offset, tag);
            case SYNC -> device.sync(tag);
            case DISCARD -> device.discard(offset, length, tag);
        };
        if (!accepted) {
            throw new AssertionError("refused with %d of %d on their way".formatted(device.inFlight(), device.depth()));
        }
        started.put(tag, one);
    }

    private IoOperation operation() {
        int dice = random.nextInt(20);
        if (dice == 0) {
            return IoOperation.SYNC;
        }
        if (dice == 1) {
            return IoOperation.DISCARD;
        }
        return dice < 11 ? IoOperation.READ : IoOperation.WRITE;
    }

    private void ended(long tag, IoOutcome outcome) {
        Started one = started.remove(tag);
        if (one == null) {
            throw new AssertionError("tag %d completed, which is not on its way".formatted(tag));
        }
        completed++;
        boolean unsupported = one.operation == IoOperation.DISCARD && outcome.kind() == IoOutcome.Kind.UNSUPPORTED;
        if (!unsupported) {
            apply(one, outcome);
        }
        free.add(one.whole);
    }

    private void apply(Started one, IoOutcome outcome) {
        if (!outcome.isDone()) {
            throw new AssertionError("%s gave %s".formatted(one, outcome));
        }
        MemorySegment model = MemorySegment.ofArray(expected).asSlice(one.offset, one.length);
        switch (one.operation) {
            case READ -> requireEqual(one.segment(), model, one.offset);
            case WRITE -> model.copyFrom(one.segment());
            case DISCARD -> model.fill((byte) 0);
            case SYNC -> {}
        }
    }

    private static void requireEqual(MemorySegment found, MemorySegment model, long offset) {
        long at = model.mismatch(found);
        if (at >= 0) {
            throw new AssertionError("byte %d of the read at %d differs".formatted(at, offset));
        }
    }
}
