package io.kvcache.tiers.disk;

import io.kvcache.core.contract.BlockContent;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.tiers.device.BlockDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A store around a [DiskLog] that knows what must be true: an index, blocks whose bytes follow from their
/// keys, a virtual clock of a millisecond a tick, and a record of what was promised.
final class LogRig implements DiskIndex, DiskLogSink {

    static final Namespace NAMESPACE = Namespace.of("model", BlockShape.kv(2, 2, 64, 16, Dtype.BF16));

    private static final byte POISON = (byte) 0xDD;
    private static final int SLOT_BYTES = 512 << 10;

    /// What the index knows of a block.
    record Known(DiskEntry entry, long place) {}

    /// A block that was filled, for the next append that is taken.
    private record Prepared(DiskEntry entry, MemorySegment slot) {}

    private record Reading(long key, DiskEntry entry, MemorySegment slot) {}

    final NavigableMap<Long, Known> known = new TreeMap<>();
    final NavigableSet<Long> durable = new TreeSet<>();
    final Map<ReadOutcome, Integer> outcomes = new EnumMap<>(ReadOutcome.class);
    final Deque<Boolean> flushes = new ArrayDeque<>();
    final List<DiskEntry> told = new ArrayList<>();
    final List<RegionOffer> offers = new ArrayList<>();

    /// Which entries of an offer to keep.
    Predicate<DiskEntry> keep = _ -> false;

    /// Whether every read of a known place must be good, and every promise be kept.
    boolean strict = true;

    /// How long a tick waits for a device that takes real time.
    long waitNanos;

    /// Called with memory before the log gets it.
    Consumer<MemorySegment> register = _ -> {};

    /// Places that are no more.
    final Deque<Known> gone = new ArrayDeque<>();

    private final Arena arena;
    private final Map<Long, MemorySegment> memory = new HashMap<>();
    private final Deque<MemorySegment> slots = new ArrayDeque<>();
    private final Map<Long, Prepared> appending = new HashMap<>();
    private final Map<Long, Reading> readings = new HashMap<>();
    private final Map<Long, Set<Long>> flushing = new HashMap<>();
    private final Map<Integer, Long> highestLife = new HashMap<>();
    private long nextKey = 1;
    private long nextTag = 1;
    private long now;
    private long appended;
    private long read;
    private @Nullable Prepared prepared;
    private @Nullable DiskLog log;

    /// @param arena of all memory
    LogRig(Arena arena) {
        this.arena = arena;
    }

    DiskLog log() {
        return Objects.requireNonNull(log, "not open");
    }

    long now() {
        return now;
    }

    /// The device is about to be another.
    void forgetPromises() {
        durable.clear();
        highestLife.clear();
    }

    /// Where a block lies that is known.
    Known at(long key) {
        return Objects.requireNonNull(known.get(key), "not known");
    }

    /// Opens a log, as the next process would.
    void open(BlockDevice device, DiskLogConfig config) {
        known.clear();
        gone.clear();
        told.clear();
        appended = 0;
        read = 0;
        appending.values().forEach(each -> giveBack(each.slot));
        appending.clear();
        readings.values().forEach(each -> giveBack(each.slot));
        readings.clear();
        flushing.clear();
        flushes.clear();
        log = new DiskLog(device, config, new Surroundings(this, this, this::memory));
    }

    private MemorySegment memory(long bytes) {
        MemorySegment span = memory.computeIfAbsent(bytes, _ -> arena.allocate(bytes, Geometry.PAGE_BYTES));
        register.accept(span);
        return span;
    }

    /// Opens, and ticks until all is told and the namespace is there.
    void openAndSettle(BlockDevice device, DiskLogConfig config) {
        open(device, config);
        settle();
        if (log().state() == LogState.SERVING) {
            log().register(NAMESPACE);
            settle();
        }
    }

    int tick() {
        now++;
        int done = log().tick(now * 1_000_000, waitNanos);
        log().validate();
        return done;
    }

    void settle() {
        for (int i = 0; i < 100_000; i++) {
            tick();
            if (log().idle() && i > 0) {
                return;
            }
        }
        throw new AssertionError("the log does not become idle: " + log().state() + " " + log().stats());
    }

    private MemorySegment take() {
        MemorySegment slot = slots.poll();
        return slot == null ? arena.allocate(SLOT_BYTES, Geometry.PAGE_BYTES) : slot;
    }

    private void giveBack(MemorySegment slot) {
        // Enough for a block that is written or read after its end was told to be noticed.
        slot.asSlice(0, Geometry.PAGE_BYTES).fill(POISON);
        slots.push(slot);
    }

    /// Appends a new block.
    ///
    /// @return its key, or 0 when the log did not take it
    long append(int bytes) {
        Prepared next = prepared == null ? prepare(nextKey++, 0, bytes) : prepared;
        prepared = null;
        long key = next.entry.keyHi();
        if (log().append(next.entry, split(next.slot, next.entry.pages()), key) != Admission.TAKEN) {
            prepared = next;
            return 0;
        }
        appending.put(key, next);
        return key;
    }

    /// Appends a new block, and ticks until the log takes it.
    ///
    /// @return its key
    long appendWaiting(int bytes) {
        for (int i = 0; i < 10_000; i++) {
            long key = append(bytes);
            if (key > 0) {
                return key;
            }
            tick();
        }
        throw new AssertionError("the log takes nothing: " + log().state() + " " + log().stats());
    }

    /// Appends a block that is known once more, told apart by its depth.
    void appendAgain(long key) {
        DiskEntry old = at(key).entry;
        Prepared next = prepare(key, old.depth() + 1, old.bytes());
        check(log().append(next.entry, split(next.slot, old.pages()), key) == Admission.TAKEN, () -> "full");
        appending.put(key, next);
    }

    private Prepared prepare(long key, int depth, int bytes) {
        MemorySegment slot = take();
        BlockContent.of(key, ~key).fill(slot.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(slot.asSlice(0, bytes));
        int namespace = log().namespaceNumber(NAMESPACE);
        return new Prepared(new DiskEntry(key, ~key, 0, 0, namespace << 16, depth, 0, bytes, checksum, 0), slot);
    }

    /// One piece, or two for every third number of pages.
    private static List<MemorySegment> split(MemorySegment slot, int pages) {
        long bytes = (long) pages * Geometry.PAGE_BYTES;
        if (pages % 3 != 0) {
            return List.of(slot.asSlice(0, bytes));
        }
        long first = (long) pages / 3 * Geometry.PAGE_BYTES;
        return List.of(slot.asSlice(0, first), slot.asSlice(first, bytes - first));
    }

    @Override
    public void appended(long key, long place) {
        Prepared ended = Objects.requireNonNull(appending.remove(key), "told twice");
        giveBack(ended.slot);
        DiskEntry entry = ended.entry;
        if (place != DiskPlace.NONE) {
            appended++;
            known.put(key, new Known(entry.at(DiskPlace.page(place)), place));
            lives(place);
        }
    }

    /// Reads a block that is known.
    Admission read(long key) {
        return read(key, at(key));
    }

    Admission read(long key, Known at) {
        MemorySegment slot = take();
        long tag = nextTag++;
        DiskEntry entry = at.entry;
        List<MemorySegment> pieces = split(slot, entry.pages());
        Admission admission = log().read(new BlockRead(at.place, entry.bytes(), entry.checksum(), pieces, tag));
        if (admission == Admission.TAKEN) {
            readings.put(tag, new Reading(key, entry, slot));
        } else {
            slots.push(slot);
        }
        return admission;
    }

    @Override
    public void read(long tag, ReadOutcome outcome) {
        Reading reading = Objects.requireNonNull(readings.remove(tag), "told twice");
        read++;
        outcomes.merge(outcome, 1, Integer::sum);
        if (outcome == ReadOutcome.GOOD) {
            BlockContent.of(reading.key, ~reading.key).require(reading.slot.asSlice(0, reading.entry.bytes()));
        } else {
            check(!strict, () -> "reading block " + reading.key + " gave " + outcome);
        }
        giveBack(reading.slot);
    }

    Admission flush() {
        long tag = nextTag++;
        Admission admission = log().flush(tag);
        if (admission == Admission.TAKEN) {
            Set<Long> promised = new TreeSet<>(known.keySet());
            promised.addAll(appending.keySet());
            flushing.put(tag, promised);
        }
        return admission;
    }

    @Override
    public void flushed(long tag, boolean isDurable) {
        Set<Long> promised = Objects.requireNonNull(flushing.remove(tag), "told twice");
        promised.retainAll(known.keySet());
        flushes.add(isDurable);
        if (isDurable) {
            durable.addAll(promised);
        }
    }

    @Override
    public void registered(Namespace namespace, int number) {
        check(namespace.equals(log().namespaces().get(number)), () -> namespace + " is not number " + number);
    }

    @Override
    public void recovered(DiskEntry entry, long place) {
        check(entry.keyLo() == ~entry.keyHi(), () -> "an entry that was never written: " + entry);
        told.add(entry);
        known.putIfAbsent(entry.keyHi(), new Known(entry, place));
        long life = log().life(place);
        long highest = highestLife.getOrDefault(DiskPlace.region(place), 0L);
        check(!strict || life >= highest, () -> entry + " is of life " + life + ", there was " + highest);
    }

    @Override
    public void recoveryEnded() {
        if (strict) {
            for (long key : durable) {
                check(known.containsKey(key), () -> "block " + key + " was flushed, and is lost");
            }
        }
    }

    @Override
    public void offered(RegionOffer offer) {
        offers.add(offer);
        for (int i = offer.size() - 1; i >= 0; i--) {
            long key = offer.entry(i).keyHi();
            Known at = known.get(key);
            boolean current = at != null && at.place == offer.place(i);
            boolean kept = current && keep.test(offer.entry(i)) && offer.keep(i);
            if (current && !kept) {
                forget(key);
            }
        }
    }

    private void forget(long key) {
        gone.add(Objects.requireNonNull(known.remove(key)));
        if (gone.size() > 100) {
            gone.remove();
        }
        durable.remove(key);
    }

    @Override
    public void moved(DiskEntry entry, long from, long to) {
        Known old = known.get(entry.keyHi());
        check(old != null && old.place == from, () -> entry + " was not there");
        known.put(entry.keyHi(), new Known(entry, to));
        gone.add(Objects.requireNonNull(old));
        lives(to);
    }

    @Override
    public void lost(DiskEntry entry, long place) {
        forget(entry.keyHi());
    }

    /// The log counts what was told.
    void requireCounts(DiskLogStats stats) {
        check(stats.appended() == appended, () -> stats + ", and told of " + appended);
        DiskLogStats.Reads reads = stats.reads();
        long ended = reads.good() + reads.ioErrors() + reads.checksumErrors();
        check(ended == read, () -> stats + ", and " + read + " reads were told");
        DiskLogStats.RegionCounts regions = stats.regions();
        int sum = regions.free()
                + regions.open()
                + regions.closing()
                + regions.closed()
                + regions.reclaiming()
                + regions.freeing()
                + regions.bad();
        check(log().recovering() || sum == log().regions(), () -> regions + " of " + log().regions());
    }

    private void lives(long place) {
        highestLife.merge(DiskPlace.region(place), log().life(place), Math::max);
    }

    private static void check(boolean holds, Supplier<String> message) {
        if (!holds) {
            throw new AssertionError(message.get());
        }
    }
}
