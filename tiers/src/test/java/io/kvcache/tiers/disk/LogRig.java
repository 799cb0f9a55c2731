package io.kvcache.tiers.disk;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.tiers.device.BlockDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
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

    /// What the index knows of a block.
    record Known(DiskEntry entry, long place) {}

    /// A block that was filled, for the next append that is taken.
    private record Prepared(DiskEntry entry, MemorySegment slot) {}

    private record Reading(long key, DiskEntry entry, MemorySegment slot) {}

    /// What a flush is to make durable.
    private record Promise(Set<Long> present, Map<Long, Integer> versions) {}

    final NavigableMap<Long, Known> known = new TreeMap<>();
    final NavigableSet<Long> durable = new TreeSet<>();
    final Map<ReadOutcome, Integer> outcomes = new EnumMap<>(ReadOutcome.class);
    final Deque<Boolean> flushes = new ArrayDeque<>();
    final List<DiskEntry> told = new ArrayList<>();
    final List<RegionOffer> offers = new ArrayList<>();

    /// Which entries of an offer to keep.
    Predicate<DiskEntry> keep = _ -> false;

    /// Whether every read of a known place must be good, and every promise kept.
    boolean strict = true;

    /// How long a tick waits for a device that takes real time.
    long waitNanos;

    /// Called with memory before the log gets it.
    Consumer<MemorySegment> register = _ -> {};

    /// Appends and reads that were told since the log was opened.
    long appended;
    long read;

    /// Places that are no more.
    final Deque<Known> gone = new ArrayDeque<>();

    private final RigMemory memory;
    private final Map<Long, Prepared> appending = new HashMap<>();
    private final Map<Long, Reading> readings = new HashMap<>();
    private final Map<Long, Promise> flushing = new HashMap<>();
    private final Versions versions = new Versions();
    private final Map<Integer, Long> highestLife = new HashMap<>();
    private long nextKey = 1;
    private long nextTag = 1;
    private long now;
    private @Nullable Prepared prepared;
    private @Nullable DiskLog log;

    /// @param arena of all memory
    LogRig(Arena arena) {
        this.memory = new RigMemory(arena);
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
        versions.forget();
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
        appending.values().forEach(each -> memory.giveBack(each.slot));
        appending.clear();
        readings.values().forEach(each -> memory.giveBack(each.slot));
        readings.clear();
        flushing.clear();
        flushes.clear();
        versions.crash();
        log = new DiskLog(device, config, new Surroundings(this, this, this::memory));
    }

    private MemorySegment memory(long bytes) {
        MemorySegment span = memory.forLog(bytes);
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

    /// Time goes on and nothing is ticked.
    void standStill(long nanos) {
        now += nanos / 1_000_000;
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

    /// Appends a new block.
    ///
    /// @return its key, or 0 when the log did not take it
    long append(int bytes) {
        Prepared next = prepared == null ? prepare(nextKey++, bytes) : prepared;
        prepared = append(next) ? null : next;
        return prepared == null ? next.entry.keyHi() : 0;
    }

    private boolean append(Prepared next) {
        long key = next.entry.keyHi();
        if (log().append(next.entry, RigMemory.split(next.slot, next.entry.pages()), key) != Admission.TAKEN) {
            return false;
        }
        appending.put(key, next);
        return true;
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

    /// Appends a block once more that was appended before, told apart by its depth.
    ///
    /// @return whether the log took it; never while it is on its way already
    boolean appendAgain(long key, int bytes) {
        if (appending.containsKey(key)) {
            return false;
        }
        Prepared next = prepare(key, bytes);
        boolean taken = append(next);
        if (!taken) {
            versions.ended(key, false);
            memory.giveBack(next.slot);
        }
        return taken;
    }

    /// Buries a block, whether it is known or on its way.
    Admission bury(long key) {
        return bury(entry(key, 0, 1, 0).tombstone(), List.of(key));
    }

    /// Buries everything.
    Admission buryAll() {
        return bury(DiskEntry.tombstone(log().namespaceNumber(NAMESPACE)), versions.keys());
    }

    private Admission bury(DiskEntry tombstone, Collection<Long> keys) {
        long tag = -nextTag++;
        Admission admission = log().bury(tombstone, tag);
        if (admission == Admission.TAKEN) {
            versions.bury(tombstone);
            // What is prepared for the next append will be later than this tombstone.
            keys.stream()
                    .filter(key -> prepared == null || prepared.entry.keyHi() != key)
                    .forEach(key -> {
                        versions.next(key, tag);
                        known.remove(key);
                        durable.remove(key);
                    });
        }
        return admission;
    }

    private Prepared prepare(long key, int bytes) {
        MemorySegment slot = memory.take();
        BlockContent.of(key, ~key).fill(slot.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(slot.asSlice(0, bytes));
        return new Prepared(entry(key, versions.next(key, key), bytes, checksum), slot);
    }

    private DiskEntry entry(long key, int version, int bytes, int checksum) {
        int namespace = log().namespaceNumber(NAMESPACE);
        return new DiskEntry(key, ~key, 0, 0, namespace << 16, version, 0, bytes, checksum, 0);
    }

    @Override
    public void appended(long tag, long place) {
        boolean written = place != DiskPlace.NONE;
        appended += written ? 1 : 0;
        versions.ended(tag, written);
        if (tag < 0) {
            return;
        }
        Prepared ended = Objects.requireNonNull(appending.remove(tag), "told twice");
        memory.giveBack(ended.slot);
        if (written && versions.isLatest(tag, ended.entry.depth())) {
            known.put(tag, new Known(ended.entry.at(DiskPlace.page(place)), place));
            lives(place);
        }
    }

    /// Reads a block that is known.
    Admission read(long key) {
        return read(key, at(key));
    }

    Admission read(long key, Known at) {
        MemorySegment slot = memory.take();
        long tag = nextTag++;
        DiskEntry entry = at.entry;
        var pieces = RigMemory.split(slot, entry.pages());
        Admission admission = log().read(new BlockRead(at.place, entry.bytes(), entry.checksum(), pieces, tag));
        if (admission == Admission.TAKEN) {
            readings.put(tag, new Reading(key, entry, slot));
        } else {
            memory.giveBack(slot);
        }
        return admission;
    }

    @Override
    public void read(long tag, ReadOutcome outcome) {
        Reading reading = Objects.requireNonNull(readings.remove(tag), "told twice");
        read++;
        outcomes.merge(outcome, 1, Integer::sum);
        if (outcome == ReadOutcome.GOOD) {
            BlockContent.of(reading.key, ~reading.key).requireEqual(reading.slot.asSlice(0, reading.entry.bytes()));
        } else {
            check(!strict, () -> "reading block " + reading.key + " gave " + outcome);
        }
        memory.giveBack(reading.slot);
    }

    Admission flush() {
        long tag = nextTag++;
        Admission admission = log().flush(tag);
        if (admission == Admission.TAKEN) {
            Set<Long> promised = new TreeSet<>(known.keySet());
            promised.addAll(appending.keySet());
            flushing.put(tag, new Promise(promised, versions.promise()));
        }
        return admission;
    }

    @Override
    public void flushed(long tag, boolean isDurable) {
        Promise promised = Objects.requireNonNull(flushing.remove(tag), "told twice");
        promised.present.retainAll(known.keySet());
        flushes.add(isDurable);
        if (isDurable) {
            durable.addAll(promised.present);
            versions.durable(promised.versions);
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
        if (!versions.isBuried(entry.keyHi())) {
            known.putIfAbsent(entry.keyHi(), new Known(entry, place));
        }
        long life = log().life(place);
        long highest = highestLife.getOrDefault(DiskPlace.region(place), 0L);
        check(!strict || life >= highest, () -> entry + " is of life " + life + ", there was " + highest);
    }

    @Override
    public void buried(DiskEntry tombstone) {
        versions.bury(tombstone);
    }

    @Override
    public void recoveryEnded() {
        if (strict) {
            known.forEach((key, at) -> check(
                    at.entry.depth() >= versions.least(key),
                    () -> at + " came back, and version " + versions.least(key) + " was flushed"));
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
        if (old != null && old.place == from) {
            known.put(entry.keyHi(), new Known(entry, to));
            gone.add(old);
        }
        lives(to);
    }

    @Override
    public void lost(DiskEntry entry, long place) {
        Known old = known.get(entry.keyHi());
        if (old != null && old.place == place) {
            forget(entry.keyHi());
        }
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
