package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockKey;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Consumer;

/// What may be read of objects. Each put and each drop of a key gets the next number; a value begins with
/// its number, and its other bytes follow from key and number.
///
/// Some runs put values again, under their numbers: that changes nothing of what may be read.
///
/// Of a key the store may have the value of any number from a *floor* on, or none. A put or drop is the
/// floor from then on, as is what was read. A crash lowers the floor to where it was when a flush began
/// that was answered with true: so what is older than what was flushed, or was dropped and flushed, does
/// not come back. What was not flushed may.
final class ObjectOracle {

    private static final int KEYS = 10;
    private static final int SMALL = 100_000;
    private static final int LARGE = 900_000;

    private final SplittableRandom random;
    private final boolean repeats;
    private final CoverageCounters coverage;
    private final Consumer<BlockKey> overtaken;
    private final long[] floors = new long[KEYS];
    private final long[] durable = new long[KEYS];
    private final long[] values = new long[KEYS];
    private final int[] lengths = new int[KEYS];
    private final Set<BlockKey> left = new HashSet<>();
    private long next = 1;

    /// @param overtaken told each key that is put or dropped: older copies of it count no longer
    /// @param repeats whether half of the puts are of the value before
    ObjectOracle(SplittableRandom random, boolean repeats, Consumer<BlockKey> overtaken, CoverageCounters rare) {
        this.random = random;
        this.repeats = repeats;
        this.overtaken = overtaken;
        this.coverage = rare;
    }

    private static byte[] key(int index) {
        return new byte[] {(byte) index, 7};
    }

    private static BlockContent content(int index, long number) {
        return BlockContent.of(index, -1).withVersion(number);
    }

    void put(LocalKvCache cache, Duration timeout) {
        int index = random.nextInt(KEYS);
        int some = Long.BYTES + 1 + random.nextInt(random.nextInt(10) == 0 ? LARGE : SMALL);
        boolean again = repeats && random.nextBoolean() && values[index] != 0;
        int bytes = again ? lengths[index] : some;
        try (ObjectWriter writer = cache.putObject(SimKeySpace.OBJECTS, key(index), bytes, timeout)) {
            coverage.count("object put " + writer.outcome());
            if (writer.outcome() != PutOutcome.RESERVED || random.nextInt(20) == 0) {
                return;
            }
            long number = again ? values[index] : next++;
            MemorySegment value = content(index, number).toHeapSegment(bytes);
            value.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, number);
            writer.copyFrom(value);
            SealOutcome sealed = writer.seal();
            require(sealed == SealOutcome.SEALED, () -> "an object is " + sealed);
            coverage.countIf("object put again", again);
            raise(index, number);
            values[index] = number;
            lengths[index] = bytes;
        }
    }

    private void raise(int index, long number) {
        BlockKey key = BlockKey.ofObject(SimKeySpace.OBJECTS, key(index));
        floors[index] = number;
        values[index] = 0;
        overtaken.accept(key);
        coverage.countIf("object put or dropped after it left the disk", left.remove(key));
    }

    /// A copy that has left a disk must not come back when its key was put or dropped since.
    void onEvent(CacheEvent event) {
        if (event.tier() == TierKind.DISK && event.kind() == EventKind.EVICTED) {
            left.add(new BlockKey(event.keyHi(), event.keyLo()));
        }
    }

    void get(LocalKvCache cache, Duration timeout) {
        int index = random.nextInt(KEYS);
        boolean resident = timeout.isZero();
        try (ObjectView view = cache.getObject(SimKeySpace.OBJECTS, key(index), timeout)) {
            if (view != null) {
                check(index, view);
                coverage.countIf("object read with a time-out", !resident);
            } else if (resident) {
                coverage.countIf("object expected", cache.prefetchObject(SimKeySpace.OBJECTS, key(index)));
            }
        }
    }

    private void check(int index, ObjectView view) {
        MemorySegment value = MemorySegment.ofArray(new byte[(int) view.bytes()]);
        view.copyTo(0, view.bytes(), value);
        long number = value.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        require(
                number >= floors[index] && number < next,
                () -> "object " + index + " has number " + number + ", which is not from " + floors[index] + " to "
                        + (next - 1));
        content(index, number).requireEqual(Long.BYTES, value.asSlice(Long.BYTES));
        floors[index] = number;
    }

    void drop(LocalKvCache cache) {
        int index = random.nextInt(KEYS);
        coverage.countIf("object dropped", cache.dropObject(SimKeySpace.OBJECTS, key(index)));
        raise(index, next++);
    }

    void dropAll(LocalKvCache cache) {
        coverage.countIf("objects dropped", cache.drop(SimKeySpace.OBJECTS) > 0);
        for (int index = 0; index < KEYS; index++) {
            raise(index, next++);
        }
    }

    /// The floors of now, for a flush that begins.
    long[] floors() {
        return floors.clone();
    }

    void onFlushed(long[] then) {
        for (int index = 0; index < KEYS; index++) {
            durable[index] = Math.max(durable[index], then[index]);
        }
    }

    /// Values that were not flushed may be lost or come back.
    ///
    /// @param promised whether the disks keep what they say they have
    void onRestart(boolean promised) {
        for (int index = 0; index < KEYS; index++) {
            floors[index] = promised ? durable[index] : 0;
        }
    }
}
