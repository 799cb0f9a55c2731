package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.movement.TierScheduler.FlushBarrier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/// The entries that must be there after a crash, by the flushes and by the store's own events.
///
/// A flush that ends with true promises each key that was known when it began, unless the store said
/// meanwhile that it left the disks or left host memory unwritten; all of these have to lie on disk at
/// that moment. A promise ends when the store says that the key has left the disks: evicted, reclaimed,
/// dropped, replaced, or lost with its disk. After a crash every key that is promised has to be found,
/// unless it or a block above it was dropped or evicted from disk while the disks were still telling what
/// they have, a region was reclaimed meanwhile, or there were more keys than records.
///
/// [DroppedBlocks] has the dropped ones.
final class DurabilityOracle {

    private static final int EVENTS = 1 << 16;

    private final SimKeySpace simKeySpace;
    private final CoverageCounters coverage;
    private final Set<BlockKey> durableKeys = new HashSet<>();
    private final Set<BlockKey> expectedKeys = new HashSet<>();
    private final Set<BlockKey> evictedDuringRecovery = new HashSet<>();
    private final List<PendingFlush> pending = new ArrayList<>();
    private final Predicate<BlockKey> unwritable;
    private final DroppedBlocks droppedBlocks;
    private boolean told;
    private boolean dropped;
    private long nextEvent;

    /// A flush under way.
    private static final class PendingFlush {
        final FlushBarrier flushBarrier;
        final Set<BlockKey> keys;
        final Set<BlockKey> left = new HashSet<>();
        final long lastDrop;
        final long[] floors;
        final long sinceNanos;

        PendingFlush(FlushBarrier flushBarrier, Set<BlockKey> keys, long lastDrop, long[] floors, long sinceNanos) {
            this.flushBarrier = flushBarrier;
            this.keys = keys;
            this.lastDrop = lastDrop;
            this.floors = floors;
            this.sinceNanos = sinceNanos;
        }
    }

    /// @param unwritable keys of blocks that are too large for a disk
    /// @param kept whether the disks keep what they say they have
    DurabilityOracle(SimKeySpace simKeySpace, Predicate<BlockKey> unwritable, boolean kept, CoverageCounters rare) {
        droppedBlocks = new DroppedBlocks(kept);
        this.simKeySpace = simKeySpace;
        this.unwritable = unwritable;
        this.coverage = rare;
    }

    /// Begins a flush; [#pollEvents] ends it.
    void beginFlush(TickDrivenCache store, long[] floors, long nowNanos) {
        Set<BlockKey> keys = sealed(store.store());
        pending.add(new PendingFlush(
                store.tierScheduler().flushBarrier(), keys, droppedBlocks.lastDrop(), floors, nowNanos));
    }

    /// Reads the events, and looks whether flushes have ended.
    void pollEvents(TickDrivenCache store, ObjectOracle objects) {
        readEvents(store).forEach(objects::onEvent);
        pending.removeIf(each -> each.flushBarrier.advance() && onFlushEnded(each, store, objects));
    }

    /// Reads the events, also of a store that was closed.
    List<CacheEvent> readEvents(TickDrivenCache store) {
        EventBatch batch = store.store().events().since(nextEvent, EVENTS);
        require(!batch.hasGap(), () -> "more events than are kept");
        nextEvent = batch.nextSequence();
        batch.events().forEach(this::onEvent);
        return batch.events();
    }

    private void onEvent(CacheEvent event) {
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        if (event.kind().isAddition()) {
            droppedBlocks.onStored(key, event.tier());
            return;
        }
        coverage.count(event.tier() + " " + event.kind());
        if (event.tier() == TierKind.DEVICE && event.kind() == EventKind.EVICTED) {
            return; // nothing is promised of a device
        }
        if (event.kind() == EventKind.DROPPED) {
            droppedBlocks.onDropped(key);
        }
        pending.forEach(each -> each.left.add(key));
        if (!told && (event.tier() == TierKind.DISK || event.kind() != EventKind.EVICTED)) {
            evictedDuringRecovery.add(key);
        }
        if (event.tier() == TierKind.DISK) {
            durableKeys.remove(key);
            pending.forEach(each -> each.keys.remove(key));
        }
    }

    private boolean onFlushEnded(PendingFlush each, TickDrivenCache store, ObjectOracle objects) {
        coverage.count(each.flushBarrier.isDurable() ? "flush durable" : "flush not durable");
        if (each.flushBarrier.isDurable()) {
            Map<BlockKey, Boolean> known = knownKeys(store.store());
            for (BlockKey key : each.keys) {
                boolean onDisk = known.getOrDefault(key, false);
                require(
                        onDisk || each.left.contains(key) || !known.containsKey(key) || unwritable.test(key),
                        () -> key + " was there when a flush began that ended with true, and is not on disk: "
                                + store.cache().offloadStats() + " " + describe(store.store(), key));
                if (onDisk) {
                    durableKeys.add(key);
                }
            }
            droppedBlocks.onFlushed(each.lastDrop);
            objects.onFlushed(each.floors);
        }
        return true;
    }

    /// When the oldest flush under way began; far in the future when there is none.
    long oldestFlushNanos() {
        return pending.stream().mapToLong(each -> each.sinceNanos).min().orElse(Long.MAX_VALUE);
    }

    /// Blocks of a chain from one on and all below that are dropped, also those that no disk has told of
    /// yet. All events before were read.
    void onDropped(BlockChain chain, int from) {
        dropped = true;
        discardUnreported(chain.key(from));
        for (int index = from; index < chain.length(); index++) {
            droppedBlocks.onDropped(chain.key(index));
            SimKeySpace.entriesBehind(chain, index).forEach(droppedBlocks::onDropped);
        }
    }

    /// All blocks of a namespace are dropped. All events before were read.
    void onDropped(Namespace space) {
        dropped = true;
        expectedKeys.removeIf(key -> simKeySpace.belongsTo(key, space));
        simKeySpace.keysOf(space).forEach(droppedBlocks::onDropped);
    }

    /// Stops expecting a key and all keys below it that no disk has reported yet.
    void discardUnreported(BlockKey block) {
        expectedKeys.removeIf(key -> simKeySpace.anyInPath(key, block::equals));
    }

    /// Stops expecting all keys that no disk has reported yet. The store may have dropped recovered blocks before
    /// recovery ended, without an event.
    void releaseUnreported() {
        expectedKeys.clear();
    }

    /// Stops expecting what a disk gives up that was out before it had reported, and that a later store finds again:
    /// all objects, as they may have been replaced meanwhile, and its blocks if any were dropped.
    void releaseGivenUp() {
        expectedKeys.removeIf(key -> dropped || !simKeySpace.isBlock(key));
    }

    /// Carries the expectations over to a new store, as the previous one was closed or has crashed.
    void onRestart() {
        droppedBlocks.onRestart();
        expectedKeys.removeIf(this::evictedDuringRecovery);
        expectedKeys.addAll(durableKeys);
        durableKeys.clear();
        evictedDuringRecovery.clear();
        told = false;
        dropped = false;
        pending.clear();
        nextEvent = 0;
    }

    private boolean evictedDuringRecovery(BlockKey key) {
        return simKeySpace.anyInPath(key, evictedDuringRecovery::contains);
    }

    /// Compares the recovered blocks with the expected ones, once all disks have reported their blocks.
    ///
    /// @param binding whether every expected block must be there
    void verifyRecovered(HostStore store, boolean binding) {
        Map<BlockKey, Boolean> known = knownKeys(store);
        for (BlockKey key : expectedKeys) {
            boolean there = known.containsKey(key);
            require(
                    there || !binding || evictedDuringRecovery(key) || isWithoutBlock(key, known),
                    () -> key + " was flushed, has not left the disk, and is not found after the crash: "
                            + store.tierPort().stats());
            if (known.getOrDefault(key, false)) {
                durableKeys.add(key);
            }
            coverage.countIf("promise kept", there && binding);
        }
        expectedKeys.clear();
        told = true;
    }

    /// Returns whether a key is that of an entry of a window or state whose block was not flushed with it.
    private boolean isWithoutBlock(BlockKey key, Map<BlockKey, Boolean> known) {
        BlockKey block = simKeySpace.blockOfEntry(key);
        return block != null && !expectedKeys.contains(block) && !known.containsKey(block);
    }

    /// Keys whose bytes are in host memory or on disk.
    private static Set<BlockKey> sealed(HostStore store) {
        RecordPool records = store.records();
        Set<BlockKey> sealed = new HashSet<>();
        for (int record = 0; record < records.highWaterMark(); record++) {
            int state = ControlWord.state(records.control(record));
            if (state == ControlWord.SEALED || (ControlWord.isKnown(state) && records.diskAddress(record) != -1)) {
                sealed.add(new BlockKey(records.keyHi(record), records.keyLo(record)));
            }
        }
        return sealed;
    }

    private static String describe(HostStore store, BlockKey key) {
        RecordPool records = store.records();
        for (int record = 0; record < records.highWaterMark(); record++) {
            if (records.keyHi(record) == key.hi() && records.keyLo(record) == key.lo()) {
                long control = records.control(record);
                return "record " + record + " of " + records.bytes(record) + " bytes, depth " + records.depth(record)
                        + ", state " + ControlWord.state(control) + ", " + ControlWord.pins(control)
                        + " pins, identity "
                        + Integer.toHexString(records.flags(record)) + ", parent " + records.parent(record);
            }
        }
        return "no record";
    }

    /// Known keys, and whether they lie on disk.
    static Map<BlockKey, Boolean> knownKeys(HostStore store) {
        RecordPool records = store.records();
        Map<BlockKey, Boolean> known = new HashMap<>();
        for (int record = 0; record < records.highWaterMark(); record++) {
            if (ControlWord.isKnown(ControlWord.state(records.control(record)))) {
                BlockKey key = new BlockKey(records.keyHi(record), records.keyLo(record));
                known.put(key, records.diskAddress(record) != -1);
            }
        }
        return known;
    }

    /// Blocks that were dropped and not put again: no disk may bring them back, neither when it was out for a
    /// while, nor after a crash if a flush that began after the drop was answered with true.
    private static final class DroppedBlocks {

        /// Dropped keys, with the number of the drop. The number tells whether a block that was put and dropped
        /// again during a flush was dropped after the flush began.
        private final Map<BlockKey, Long> droppedKeys = new HashMap<>();

        private final Set<BlockKey> durable = new HashSet<>();
        private final boolean binding;
        private long drops;

        /// @param binding whether the disks keep what they say they have
        DroppedBlocks(boolean binding) {
            this.binding = binding;
        }

        void onDropped(BlockKey key) {
            if (binding) {
                droppedKeys.put(key, ++drops);
            }
        }

        /// Requires that a dropped block does not come back from a disk. A block that is put again is stored in
        /// host memory before any disk.
        void onStored(BlockKey key, TierKind tier) {
            require(
                    tier != TierKind.DISK || !droppedKeys.containsKey(key),
                    () -> key + " was dropped and not put again, and a disk brings it back");
            droppedKeys.remove(key);
            durable.remove(key);
        }

        /// Number of the last drop, when a flush begins.
        long lastDrop() {
            return drops;
        }

        /// A flush has ended with true.
        ///
        /// @param last drop before it began
        void onFlushed(long last) {
            droppedKeys.forEach((key, drop) -> {
                if (drop <= last) {
                    durable.add(key);
                }
            });
        }

        /// Keeps only the durable drops for a new store, as the previous one was closed or has crashed.
        void onRestart() {
            droppedKeys.keySet().retainAll(durable);
        }
    }
}
