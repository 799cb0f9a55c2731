package io.kvcache.tiers.disk;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier.RangeTier.TierRange;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.RegionReclaimer.RegionCandidates;
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
final class DiskLogHarness implements TierListener {

    static final Namespace NAMESPACE = Namespace.of("model", BlockShape.kv(2, 2, 64, 16, Dtype.BF16));

    /// Index entry of a block.
    record Known(DiskEntry entry, long address) {}

    /// A block that was filled, for the next append that is taken.
    private record Prepared(DiskEntry entry, MemorySegment slot) {}

    private record Reading(long key, DiskEntry entry, MemorySegment slot) {}

    private record RangeReading(long key, int from, MemorySegment target) {}

    /// Entries that a flush must make durable.
    private record Promise(Set<Long> present, Map<Long, Integer> versions) {}

    final NavigableMap<Long, Known> known = new TreeMap<>();
    final NavigableSet<Long> durable = new TreeSet<>();
    final Map<TierRead.Outcome, Integer> outcomes = new EnumMap<>(TierRead.Outcome.class);
    final Deque<Boolean> flushes = new ArrayDeque<>();
    final List<DiskEntry> reportedEntries = new ArrayList<>();
    final List<RegionCandidates> offers = new ArrayList<>();

    /// Selects the entries of an offer to keep.
    Predicate<DiskEntry> keep = _ -> false;

    /// True if every read of a known address must be good, and every promise kept.
    boolean strict = true;

    /// How long a tick waits for a device that takes real time.
    long waitNanos;

    /// Called with memory before the log gets it.
    Consumer<MemorySegment> register = _ -> {};

    /// Appends and reads that were told since the log was opened.
    long appended;
    long read;

    /// Parts that came.
    long rangesRead;

    /// Places that are no more.
    final Deque<Known> staleBlocks = new ArrayDeque<>();

    private final HarnessMemory memory;
    private final Map<Long, Prepared> appending = new HashMap<>();
    private final Map<Long, Reading> readings = new HashMap<>();
    private final Map<Long, RangeReading> rangeReadings = new HashMap<>();
    private final Map<Long, Promise> flushing = new HashMap<>();
    private final KeyVersions versions = new KeyVersions();
    private final Map<Integer, Long> highestEpoch = new HashMap<>();
    private long nextKey = 1;
    private long nextTag = 1;
    private long now;
    private @Nullable Prepared prepared;
    private @Nullable DiskLog log;

    /// @param arena of all memory
    DiskLogHarness(Arena arena) {
        this.memory = new HarnessMemory(arena);
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
        highestEpoch.clear();
    }

    /// Returns the address of a known block.
    Known knownBlock(long key) {
        return Objects.requireNonNull(known.get(key), "not known");
    }

    /// Opens a log, as the next process would.
    void open(BlockDevice device, DiskLogConfig config) {
        known.clear();
        staleBlocks.clear();
        reportedEntries.clear();
        appended = 0;
        read = 0;
        appending.values().forEach(each -> memory.release(each.slot));
        appending.clear();
        readings.values().forEach(each -> memory.release(each.slot));
        readings.clear();
        rangeReadings.clear();
        flushing.clear();
        flushes.clear();
        versions.crash();
        DiskSet set = new DiskSet(config::deviceId);
        DiskLog.Resources resources =
                new DiskLog.Resources(device, () -> {}, (_, bytes) -> memory(bytes), null, set.add("disk"));
        log = new DiskLog("disk", resources, config, this);
    }

    private HostMemory memory(long bytes) {
        HostMemory span = memory.forLog(bytes);
        register.accept(span.segment());
        return span;
    }

    /// Opens, and ticks until all is told and the namespace is there.
    void openAndSettle(BlockDevice device, DiskLogConfig config) {
        open(device, config);
        settle();
        if (log().state() == TierState.SERVING) {
            log().register(NAMESPACE);
            settle();
        }
    }

    /// Time goes on and nothing is ticked.
    void freeze(long nanos) {
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
            if (log().isIdle() && i > 0) {
                return;
            }
        }
        throw new AssertionError("the log does not become idle: " + log().state() + " " + log().logStats());
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
        if (log().append(next.entry, HarnessMemory.split(next.slot, next.entry.pages()), key)
                != SubmitResult.ACCEPTED) {
            return false;
        }
        appending.put(key, next);
        return true;
    }

    /// Appends a new block, and ticks until the log takes it.
    ///
    /// @return its key
    long appendAndWait(int bytes) {
        for (int i = 0; i < 10_000; i++) {
            long key = append(bytes);
            if (key > 0) {
                return key;
            }
            tick();
        }
        throw new AssertionError("the log takes nothing: " + log().state() + " " + log().logStats());
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
            memory.release(next.slot);
        }
        return taken;
    }

    /// Buries a block, whether it is known or on its way.
    SubmitResult appendTombstone(long key) {
        return appendTombstone(entry(key, 0, 1, 0).tombstone(), List.of(key));
    }

    /// Buries everything.
    SubmitResult appendNamespaceTombstone() {
        return appendTombstone(DiskEntry.tombstone(log().namespaceId(NAMESPACE)), versions.keys());
    }

    private SubmitResult appendTombstone(DiskEntry tombstone, Collection<Long> keys) {
        long tag = -nextTag++;
        SubmitResult logSubmitResult = log().appendTombstone(tombstone, tag);
        if (logSubmitResult == SubmitResult.ACCEPTED) {
            versions.addTombstone(tombstone);
            // Entries prepared for the next append will be later than this tombstone.
            keys.stream()
                    .filter(key -> prepared == null || prepared.entry.keyHi() != key)
                    .forEach(key -> {
                        versions.next(key, tag);
                        known.remove(key);
                        durable.remove(key);
                    });
        }
        return logSubmitResult;
    }

    private Prepared prepare(long key, int bytes) {
        MemorySegment slot = memory.acquire();
        BlockContent.of(key, ~key).fill(slot.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(slot.asSlice(0, bytes));
        return new Prepared(entry(key, versions.next(key, key), bytes, checksum), slot);
    }

    private DiskEntry entry(long key, int version, int bytes, int checksum) {
        int namespace = log().namespaceId(NAMESPACE);
        return new DiskEntry(key, ~key, 0, 0, namespace << 16, version, 0, bytes, checksum, StoredLayout.PLAIN, 0);
    }

    @Override
    public void onWritten(long tag, long address) {
        boolean written = address != LogAddress.NONE;
        appended += written ? 1 : 0;
        versions.ended(tag, written);
        if (tag < 0) {
            return;
        }
        Prepared ended = Objects.requireNonNull(appending.remove(tag), "told twice");
        memory.release(ended.slot);
        if (written && versions.isLatest(tag, ended.entry.depth())) {
            known.put(tag, new Known(ended.entry.withPage(LogAddress.page(address)), address));
            checkEpoch(address);
        }
    }

    /// Reads a block that is known.
    SubmitResult read(long key) {
        return read(key, knownBlock(key));
    }

    SubmitResult read(long key, Known at) {
        MemorySegment slot = memory.acquire();
        long tag = nextTag++;
        DiskEntry entry = at.entry;
        var pieces = HarnessMemory.split(slot, entry.pages());
        TierBlock block = HarnessMemory.block(entry);
        SubmitResult logSubmitResult = log().read(new TierRead(block, at.address, pieces, tag));
        if (logSubmitResult == SubmitResult.ACCEPTED) {
            readings.put(tag, new Reading(key, entry, slot));
        } else {
            memory.release(slot);
        }
        return logSubmitResult;
    }

    /// Reads some bytes of a block that is known.
    SubmitResult readRange(long key, int from, int length) {
        Known at = knownBlock(key);
        long tag = nextTag++;
        MemorySegment target = MemorySegment.ofArray(new byte[length]);
        SubmitResult submitted =
                log().readRange(new TierRange(HarnessMemory.block(at.entry), at.address, from, target, tag));
        if (submitted == SubmitResult.ACCEPTED) {
            rangeReadings.put(tag, new RangeReading(key, from, target));
        }
        return submitted;
    }

    private void onRangeRead(RangeReading range, TierRead.Outcome outcome) {
        if (outcome == TierRead.Outcome.SUCCESS) {
            rangesRead++;
            BlockContent.of(range.key, ~range.key).requireEqual(range.from, range.target);
        } else {
            check(!strict, () -> "reading a part of block " + range.key + " gave " + outcome);
        }
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        RangeReading range = rangeReadings.remove(tag);
        if (range != null) {
            read++;
            onRangeRead(range, outcome);
            return;
        }
        Reading reading = Objects.requireNonNull(readings.remove(tag), "told twice");
        read++;
        outcomes.merge(outcome, 1, Integer::sum);
        if (outcome == TierRead.Outcome.SUCCESS) {
            BlockContent.of(reading.key, ~reading.key).requireEqual(reading.slot.asSlice(0, reading.entry.bytes()));
        } else {
            check(!strict, () -> "reading block " + reading.key + " gave " + outcome);
        }
        memory.release(reading.slot);
    }

    SubmitResult flush() {
        long tag = nextTag++;
        SubmitResult logSubmitResult = log().flush(tag);
        if (logSubmitResult == SubmitResult.ACCEPTED) {
            Set<Long> promised = new TreeSet<>(known.keySet());
            promised.addAll(appending.keySet());
            flushing.put(tag, new Promise(promised, versions.snapshot()));
        }
        return logSubmitResult;
    }

    @Override
    public void onFlushed(long tag, boolean isDurable) {
        Promise promised = Objects.requireNonNull(flushing.remove(tag), "told twice");
        promised.present.retainAll(known.keySet());
        flushes.add(isDurable);
        if (isDurable) {
            durable.addAll(promised.present);
            versions.markDurable(promised.versions);
        }
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return NAMESPACE;
    }

    /// Every namespace is one, as all keys are of one.
    @Override
    public int namespaceId(Namespace namespace) {
        return 0;
    }

    @Override
    public void onRecovered(TierBlock block, long address) {
        DiskEntry entry = entry(block, address);
        check(entry.keyLo() == ~entry.keyHi(), () -> "an entry that was never written: " + entry);
        reportedEntries.add(entry);
        if (!versions.isTombstoned(entry.keyHi())) {
            known.putIfAbsent(entry.keyHi(), new Known(entry, address));
        }
        long epoch = log().epoch(address);
        long highest = highestEpoch.getOrDefault(LogAddress.region(address), 0L);
        check(!strict || epoch >= highest, () -> entry + " is of life " + epoch + ", there was " + highest);
    }

    private DiskEntry entry(TierBlock block, long address) {
        return DiskEntry.of(block, log().namespaceId(NAMESPACE)).withPage(LogAddress.page(address));
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        check(keyLo == ~keyHi, () -> "a tombstone that was never written: " + keyHi);
        versions.addTombstone(keyHi);
    }

    @Override
    public void onRecoveryEnded() {
        if (strict) {
            known.forEach((key, at) -> check(
                    at.entry.depth() >= versions.minVersion(key),
                    () -> at + " came back, and version " + versions.minVersion(key) + " was flushed"));
            for (long key : durable) {
                check(known.containsKey(key), () -> "block " + key + " was flushed, and is lost");
            }
        }
    }

    @Override
    public void onReclaim(ReclaimCandidates candidates) {
        RegionCandidates offer = (RegionCandidates) candidates;
        offers.add(offer);
        for (int i = offer.size() - 1; i >= 0; i--) {
            long key = offer.entry(i).keyHi();
            Known at = known.get(key);
            boolean current = at != null && at.address == offer.address(i);
            boolean kept = current && keep.test(offer.entry(i)) && offer.keep(i);
            if (current && !kept) {
                forget(key);
            }
        }
    }

    private void forget(long key) {
        staleBlocks.add(Objects.requireNonNull(known.remove(key)));
        if (staleBlocks.size() > 100) {
            staleBlocks.remove();
        }
        durable.remove(key);
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        DiskEntry entry = entry(block, to);
        Known old = known.get(entry.keyHi());
        if (old != null && old.address == from) {
            known.put(entry.keyHi(), new Known(entry, to));
            staleBlocks.add(old);
        }
        checkEpoch(to);
    }

    @Override
    public void onLost(TierBlock block, long address) {
        Known old = known.get(block.keyHi());
        if (old != null && old.address == address) {
            forget(block.keyHi());
        }
    }

    private void checkEpoch(long address) {
        highestEpoch.merge(LogAddress.region(address), log().epoch(address), Math::max);
    }

    private static void check(boolean holds, Supplier<String> message) {
        if (!holds) {
            throw new AssertionError(message.get());
        }
    }
}
