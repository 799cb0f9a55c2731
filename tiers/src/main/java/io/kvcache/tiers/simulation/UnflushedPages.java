package io.kvcache.tiers.simulation;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/// What a disk with a volatile cache may still lose: for each page written since it was last made durable, the
/// bytes it had before.
///
/// A sync covers what was written before it was queued, not what was written since; so each sync begins a new
/// generation, and its end makes all older ones durable.
final class UnflushedPages {

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
                // Where a later write arrived, what this generation did is no longer there to lose.
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
