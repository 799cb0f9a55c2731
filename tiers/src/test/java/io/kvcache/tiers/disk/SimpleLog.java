package io.kvcache.tiers.disk;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.tiers.device.BlockDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongConsumer;
import java.util.function.Supplier;

/// A log and an index for tests of what lies around them. Its objects have numbers for keys, and bytes that
/// follow from those.
///
/// **Threads.** One.
public final class SimpleLog implements AutoCloseable, DiskIndex, DiskLogSink {

    /// What objects are in.
    public static final Namespace OBJECTS = Namespace.objects("objects", "");

    private static final long WAIT_NANOS = 1_000_000;
    private static final int MAX_TICKS = 1_000_000;

    private final RigMemory memory;
    private final Arena arena = Arena.ofShared();
    private final Map<Long, Known> known = new TreeMap<>();
    private final Set<Long> buried = new HashSet<>();
    private final Set<Long> reclaimed = new HashSet<>();
    private final Map<Long, Known> appending = new HashMap<>();
    private final Map<Long, MemorySegment> slots = new HashMap<>();
    private final DiskLog log;
    private LongConsumer forgetting = _ -> {};
    private boolean durable;
    private int good;

    private record Known(DiskEntry entry, long place) {}

    /// Opens a log, and waits until all is told and the namespace is there, or until the log has refused.
    public SimpleLog(BlockDevice device, DiskLogConfig config) {
        memory = new RigMemory(arena);
        log = new DiskLog(device, config, new Surroundings(this, this, memory::forLog));
        settle();
        if (log.state() == LogState.SERVING) {
            log.register(OBJECTS);
            settle();
        }
    }

    /// The log itself.
    public DiskLog log() {
        return log;
    }

    /// Keys of all objects that are known, in their order.
    public Set<Long> keys() {
        return new TreeSet<>(known.keySet());
    }

    /// Keys of all objects that were known and then reclaimed since it was opened.
    public Set<Long> reclaimed() {
        return reclaimed;
    }

    /// Has it told of every object that is reclaimed, when it is.
    public void onReclaim(LongConsumer told) {
        forgetting = told;
    }

    private void tick() {
        log.tick(System.nanoTime(), WAIT_NANOS);
    }

    /// Waits until nothing is left to do.
    public void settle() {
        log.tick(System.nanoTime());
        for (int i = 0; !log.idle(); i++) {
            tick();
            require(i < MAX_TICKS, "not idle");
        }
    }

    /// Appends an object without a parent, and does not wait.
    public void append(long key, int bytes) {
        append(key, 0, bytes);
    }

    /// Appends an object, and does not wait.
    ///
    /// @param parent 0 for none
    public void append(long key, long parent, int bytes) {
        MemorySegment slot = memory.take();
        BlockContent.of(key, ~key).fill(slot.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(slot.asSlice(0, bytes));
        long parentLo = parent == 0 ? 0 : ~parent;
        DiskEntry entry = new DiskEntry(key, ~key, parent, parentLo, identity(), 0, 0, bytes, checksum, 0);
        appending.put(key, new Known(entry, DiskPlace.NONE));
        slots.put(key, slot);
        take(() -> log.append(entry, pieces(slot, entry), key));
    }

    private void take(Supplier<Admission> ask) {
        Admission admission = ask.get();
        while (admission == Admission.FULL) {
            tick();
            admission = ask.get();
        }
        require(admission == Admission.TAKEN, "answers " + admission);
    }

    private static List<MemorySegment> pieces(MemorySegment slot, DiskEntry entry) {
        return List.of(slot.asSlice(0, (long) entry.pages() * Geometry.PAGE_BYTES));
    }

    private int identity() {
        return log.namespaceNumber(OBJECTS) << 16 | DiskEntry.OBJECT;
    }

    /// Buries an object, and does not wait.
    public void bury(long key) {
        DiskEntry entry = new DiskEntry(key, ~key, 0, 0, identity(), 0, 0, 1, 0, 0);
        take(() -> log.bury(entry.tombstone(), -key));
        known.remove(key);
    }

    /// Makes everything durable, and waits until it is.
    public void flush() {
        durable = false;
        take(() -> log.flush(0));
        settle();
        require(durable, "cannot flush");
    }

    /// Reads all that is known, and compares each byte of what is good.
    ///
    /// @return how many are good
    public int readAll() {
        good = 0;
        for (Map.Entry<Long, Known> each : known.entrySet()) {
            DiskEntry entry = each.getValue().entry;
            MemorySegment slot = memory.take();
            slots.put(each.getKey(), slot);
            long place = each.getValue().place;
            take(() -> log.read(
                    new BlockRead(place, entry.bytes(), entry.checksum(), pieces(slot, entry), each.getKey())));
        }
        settle();
        return good;
    }

    private void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("the log " + what + ": " + log.state() + " " + log.cause());
        }
    }

    @Override
    public void recovered(DiskEntry entry, long place) {
        if (!buried.contains(entry.keyHi())) {
            known.putIfAbsent(entry.keyHi(), new Known(entry, place));
        }
    }

    @Override
    public void buried(DiskEntry tombstone) {
        buried.add(tombstone.keyHi());
    }

    @Override
    public void recoveryEnded() {}

    @Override
    public void offered(RegionOffer offer) {
        for (int i = 0; i < offer.size(); i++) {
            Known at = known.get(offer.entry(i).keyHi());
            if (at != null && at.place == offer.place(i)) {
                known.remove(offer.entry(i).keyHi());
                reclaimed.add(offer.entry(i).keyHi());
                forgetting.accept(offer.entry(i).keyHi());
            }
        }
    }

    @Override
    public void moved(DiskEntry entry, long from, long to) {
        throw new AssertionError("nothing is kept");
    }

    @Override
    public void lost(DiskEntry entry, long place) {
        throw new AssertionError("nothing is kept");
    }

    @Override
    public void registered(Namespace namespace, int number) {}

    @Override
    public void appended(long tag, long place) {
        if (tag > 0) {
            giveBack(tag);
            DiskEntry entry = Objects.requireNonNull(appending.remove(tag)).entry;
            if (place != DiskPlace.NONE) {
                known.put(tag, new Known(entry.at(DiskPlace.page(place)), place));
            }
        }
    }

    @Override
    public void read(long tag, ReadOutcome outcome) {
        if (outcome == ReadOutcome.GOOD) {
            int bytes = Objects.requireNonNull(known.get(tag)).entry.bytes();
            BlockContent.of(tag, ~tag)
                    .requireEqual(Objects.requireNonNull(slots.get(tag)).asSlice(0, bytes));
            good++;
        }
        giveBack(tag);
    }

    private void giveBack(long tag) {
        memory.giveBack(Objects.requireNonNull(slots.remove(tag)));
    }

    @Override
    public void flushed(long tag, boolean isDurable) {
        durable = isDurable;
    }

    /// Lets go of the memory; the device stays open, with nothing on its way.
    @Override
    public void close() {
        settle();
        arena.close();
    }
}
