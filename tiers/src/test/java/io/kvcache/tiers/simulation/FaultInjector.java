package io.kvcache.tiers.simulation;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import io.kvcache.tiers.simulation.FaultyDevice.Pending;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/// The operations of a [FaultyDevice], carried out on the device below with faults.
final class FaultInjector {

    private static final int SECTOR_BYTES = 512;
    private static final byte JUNK = (byte) 0xDB;

    private final BlockingDeviceIo below;
    private final SplittableRandom random;
    private final UnflushedPages unflushed;
    private final Map<Fault, Long> counts = new EnumMap<>(Fault.class);
    private FaultRates rates;
    private boolean full;

    FaultInjector(BlockDevice below, FaultRates rates, long seed) {
        this.below = new BlockingDeviceIo(below);
        this.rates = rates;
        this.random = new SplittableRandom(seed);
        this.unflushed = new UnflushedPages(this.below);
    }

    long count(Fault fault) {
        return counts.getOrDefault(fault, 0L);
    }

    void setRates(FaultRates change) {
        rates = change;
    }

    void setFull(boolean isFull) {
        full = isFull;
    }

    boolean shouldHang() {
        return shouldInject(Fault.HANG);
    }

    long latencyTicks() {
        return random.nextInt(rates.maxLatencyTicks() + 1);
    }

    long beginSync() {
        return unflushed.beginSync();
    }

    void loseUnflushed() {
        unflushed.loseRandomly(random);
    }

    IoOutcome execute(Pending pending) {
        return switch (pending.operation()) {
            case READ -> read(segment(pending), pending.operationRange().offset());
            case WRITE -> write(segment(pending), pending.operationRange().offset());
            case SYNC -> sync(pending.operationRange().covered());
            case DISCARD -> {
                unflushed.savePages(
                        pending.operationRange().offset(),
                        pending.operationRange().length());
                yield below.discard(
                        pending.operationRange().offset(),
                        pending.operationRange().length());
            }
        };
    }

    /// A write that was on its way when the power went.
    void maybeWrite(Pending pending) {
        if (random.nextBoolean()) {
            writeFirst(segment(pending), pending.operationRange().offset(), randomSectors(segment(pending)));
        }
    }

    private IoOutcome read(MemorySegment target, long offset) {
        if (shouldInject(Fault.READ_ERROR)) {
            target.fill(JUNK);
            return IoOutcome.of(Errno.EIO);
        }
        IoOutcome outcome = below.read(target, offset);
        if (shouldInject(Fault.BIT_FLIP)) {
            long at = random.nextLong(target.byteSize());
            target.set(JAVA_BYTE, at, (byte) (target.get(JAVA_BYTE, at) ^ 1 << random.nextInt(Byte.SIZE)));
        }
        return outcome;
    }

    private IoOutcome write(MemorySegment source, long offset) {
        if (full || shouldInject(Fault.NO_SPACE)) {
            return IoOutcome.of(Errno.ENOSPC);
        }
        if (shouldInject(Fault.WRITE_ERROR)) {
            writeFirst(source, offset, randomSectors(source));
            return IoOutcome.of(Errno.EIO);
        }
        if (shouldInject(Fault.LOST_WRITE)) {
            return IoOutcome.DONE;
        }
        if (shouldInject(Fault.TORN_WRITE)) {
            return writeFirst(source, offset, randomSectors(source));
        }
        return writeFirst(
                source,
                shouldInject(Fault.MISDIRECTED_WRITE) ? misdirectedOffset(source, offset) : offset,
                source.byteSize());
    }

    private IoOutcome sync(long covered) {
        if (shouldInject(Fault.SYNC_ERROR)) {
            return IoOutcome.of(Errno.EIO);
        }
        IoOutcome outcome = below.sync();
        unflushed.markDurable(covered);
        return outcome;
    }

    /// Another place for the span, unless the device has no other.
    private long misdirectedOffset(MemorySegment source, long offset) {
        long places = (below.device().size() - source.byteSize()) / ALIGNMENT;
        return places == 0 ? offset : (offset / ALIGNMENT + 1 + random.nextLong(places)) % (places + 1) * ALIGNMENT;
    }

    /// Less than all of a write: 0 bytes up to all sectors but one.
    private long randomSectors(MemorySegment source) {
        return random.nextLong(source.byteSize() / SECTOR_BYTES) * SECTOR_BYTES;
    }

    private IoOutcome writeFirst(MemorySegment source, long offset, long bytes) {
        unflushed.savePages(offset, source.byteSize());
        if (bytes == source.byteSize()) {
            return below.write(source, offset);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment merged = arena.allocate(source.byteSize(), ALIGNMENT);
            IoOutcome outcome = below.read(merged, offset);
            MemorySegment.copy(source, 0, merged, 0, bytes);
            return outcome.isDone() ? below.write(merged, offset) : outcome;
        }
    }

    private boolean shouldInject(Fault fault) {
        double probability = rates.of(fault);
        boolean struck = probability > 0 && random.nextDouble() < probability;
        if (struck) {
            counts.merge(fault, 1L, Long::sum);
        }
        return struck;
    }

    private static MemorySegment segment(Pending pending) {
        return Objects.requireNonNull(pending.segment(), "no segment");
    }

    /// Bytes that a disk with a volatile cache may still lose: for each page written since it was last made
    /// durable, its content before.
    ///
    /// A sync covers the writes before it was queued, not those since. So each sync begins a new generation, and
    /// its end makes all older ones durable.
    private static final class UnflushedPages {

        private static final int SECTOR_BYTES = 512;

        private final BlockingDeviceIo calls;
        private final Deque<Generation> newestFirst = new ArrayDeque<>();
        private long generations;

        private record Generation(long number, NavigableMap<Long, byte[]> before) {}

        UnflushedPages(BlockingDeviceIo calls) {
            this.calls = calls;
            startGeneration();
        }

        private void startGeneration() {
            newestFirst.addFirst(new Generation(generations++, new TreeMap<>()));
        }

        /// Called before a span is changed.
        void savePages(long offset, long length) {
            NavigableMap<Long, byte[]> before = newestFirst.getFirst().before();
            for (long page = offset; page < offset + length; page += ALIGNMENT) {
                if (!before.containsKey(page)) {
                    before.put(page, read(page));
                }
            }
        }

        /// Called when a sync is queued.
        ///
        /// @return what it covers, for [#markDurable]
        long beginSync() {
            startGeneration();
            return newestFirst.getFirst().number() - 1;
        }

        /// Called when a sync is done.
        void markDurable(long covered) {
            newestFirst.removeIf(generation -> generation.number() <= covered);
            if (newestFirst.isEmpty()) {
                startGeneration();
            }
        }

        /// Takes back some of what is not durable: of each page all, nothing, or what lies behind some sector.
        void loseRandomly(RandomGenerator random) {
            Set<Long> kept = new HashSet<>();
            for (Generation generation : newestFirst) {
                generation.before().forEach((page, old) -> {
                    // A later write has replaced this generation's write here, so this one cannot be lost.
                    if (!kept.contains(page)) {
                        int sectors = random.nextInt(ALIGNMENT / SECTOR_BYTES + 1);
                        int keptBytes = random.nextBoolean() ? ALIGNMENT * random.nextInt(2) : sectors * SECTOR_BYTES;
                        restore(page, old, keptBytes);
                        if (keptBytes > 0) {
                            kept.add(page);
                        }
                    }
                });
            }
            newestFirst.clear();
            startGeneration();
        }

        private void restore(long page, byte[] old, int keptBytes) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment now = arena.allocate(ALIGNMENT, ALIGNMENT);
                require(calls.read(now, page));
                MemorySegment.copy(MemorySegment.ofArray(old), keptBytes, now, keptBytes, ALIGNMENT - keptBytes);
                require(calls.write(now, page));
            }
        }

        private byte[] read(long page) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment now = arena.allocate(ALIGNMENT, ALIGNMENT);
                require(calls.read(now, page));
                return now.toArray(JAVA_BYTE);
            }
        }

        private static void require(IoOutcome outcome) {
            if (!outcome.isDone()) {
                throw new AssertionError("the device below fails by itself: " + outcome);
            }
        }
    }
}
