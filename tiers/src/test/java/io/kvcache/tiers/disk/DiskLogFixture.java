package io.kvcache.tiers.disk;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.RegionReclaimer.RegionCandidates;
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
public final class DiskLogFixture implements AutoCloseable, TierListener {

    /// Namespace of objects.
    public static final Namespace OBJECTS = Namespace.objects("objects", "");

    private static final long WAIT_NANOS = 1_000_000;
    private static final int MAX_TICKS = 1_000_000;

    private final HarnessMemory memory;
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

    private record Known(DiskEntry entry, long address) {}

    /// Opens a log, and waits until all is told and the namespace is there, or until the log has refused.
    public DiskLogFixture(BlockDevice device, DiskLogConfig config) {
        memory = new HarnessMemory(arena);
        log = new DiskLog(
                "disk", new DiskLog.Resources(device, () -> {}, (_, bytes) -> memory.forLog(bytes)), config, this);
        settle();
        if (log.state() == TierState.SERVING) {
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
    public void setReclaimListener(LongConsumer told) {
        forgetting = told;
    }

    private void tick() {
        log.tick(System.nanoTime(), WAIT_NANOS);
    }

    /// Waits until nothing is left to do.
    public void settle() {
        log.tick(System.nanoTime(), 0);
        for (int i = 0; !log.isIdle(); i++) {
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
        MemorySegment slot = memory.acquire();
        BlockContent.of(key, ~key).fill(slot.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(slot.asSlice(0, bytes));
        long parentLo = parent == 0 ? 0 : ~parent;
        DiskEntry entry =
                new DiskEntry(key, ~key, parent, parentLo, identity(), 0, 0, bytes, checksum, StoredLayout.PLAIN, 0);
        appending.put(key, new Known(entry, LogAddress.NONE));
        slots.put(key, slot);
        submitUntilAccepted(() -> log.append(entry, pieces(slot, entry), key));
    }

    private void submitUntilAccepted(Supplier<SubmitResult> ask) {
        SubmitResult logSubmitResult = ask.get();
        while (logSubmitResult == SubmitResult.RETRY) {
            tick();
            logSubmitResult = ask.get();
        }
        require(logSubmitResult == SubmitResult.ACCEPTED, "answers " + logSubmitResult);
    }

    private static List<MemorySegment> pieces(MemorySegment slot, DiskEntry entry) {
        return List.of(slot.asSlice(0, (long) entry.pages() * DiskGeometry.PAGE_BYTES));
    }

    private int identity() {
        return log.namespaceId(OBJECTS) << 16 | DiskEntry.OBJECT;
    }

    /// Buries an object, and does not wait.
    public void appendTombstone(long key) {
        DiskEntry entry = new DiskEntry(key, ~key, 0, 0, identity(), 0, 0, 1, 0, StoredLayout.PLAIN, 0);
        submitUntilAccepted(() -> log.appendTombstone(entry.tombstone(), -key));
        known.remove(key);
    }

    /// Makes everything durable, and waits until it is.
    public void flush() {
        durable = false;
        submitUntilAccepted(() -> log.flush(0));
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
            MemorySegment slot = memory.acquire();
            slots.put(each.getKey(), slot);
            long address = each.getValue().address;
            TierBlock block = HarnessMemory.block(entry);
            submitUntilAccepted(() -> log.read(new TierRead(block, address, pieces(slot, entry), each.getKey())));
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
    public Namespace namespace(int namespaceId) {
        return OBJECTS;
    }

    @Override
    public int namespaceId(Namespace namespace) {
        return 0;
    }

    @Override
    public void onRecovered(TierBlock block, long address) {
        if (!buried.contains(block.keyHi())) {
            DiskEntry entry = DiskEntry.of(block, log.namespaceId(OBJECTS)).withPage(LogAddress.page(address));
            known.putIfAbsent(block.keyHi(), new Known(entry, address));
        }
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        buried.add(keyHi);
    }

    @Override
    public void onRecoveryEnded() {}

    @Override
    public void onReclaim(ReclaimCandidates candidates) {
        RegionCandidates offer = (RegionCandidates) candidates;
        for (int i = 0; i < offer.size(); i++) {
            Known at = known.get(offer.entry(i).keyHi());
            if (at != null && at.address == offer.address(i)) {
                known.remove(offer.entry(i).keyHi());
                reclaimed.add(offer.entry(i).keyHi());
                forgetting.accept(offer.entry(i).keyHi());
            }
        }
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        throw new AssertionError("nothing is kept");
    }

    @Override
    public void onLost(TierBlock block, long address) {
        throw new AssertionError("nothing is kept");
    }

    @Override
    public void onWritten(long tag, long address) {
        if (tag > 0) {
            giveBack(tag);
            DiskEntry entry = Objects.requireNonNull(appending.remove(tag)).entry;
            if (address != LogAddress.NONE) {
                known.put(tag, new Known(entry.withPage(LogAddress.page(address)), address));
            }
        }
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        if (outcome == TierRead.Outcome.SUCCESS) {
            int bytes = Objects.requireNonNull(known.get(tag)).entry.bytes();
            BlockContent.of(tag, ~tag)
                    .requireEqual(Objects.requireNonNull(slots.get(tag)).asSlice(0, bytes));
            good++;
        }
        giveBack(tag);
    }

    private void giveBack(long tag) {
        memory.release(Objects.requireNonNull(slots.remove(tag)));
    }

    @Override
    public void onFlushed(long tag, boolean isDurable) {
        durable = isDurable;
    }

    /// Lets go of the memory; the device stays open, with nothing on its way.
    @Override
    public void close() {
        settle();
        arena.close();
    }
}
