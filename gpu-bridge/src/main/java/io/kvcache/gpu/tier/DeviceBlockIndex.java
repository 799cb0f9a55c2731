package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/// Blocks on the device, by their keys.
///
/// **Threads.** Changed by the tier's, read by all.
final class DeviceBlockIndex {

    /// Uses that wait to be reported; of more, some are left out.
    private static final int MAX_UNREPORTED = 4096;

    private final ConcurrentMap<BlockKey, DeviceEntry> entries = new ConcurrentHashMap<>();
    private final BlockingQueue<DeviceEntry> unreportedUses = new ArrayBlockingQueue<>(MAX_UNREPORTED);
    private final DeviceSpan memory;
    private final TierListener listener;
    private boolean closed;

    /// @param memory that its blocks lie in
    /// @param listener hears which blocks can be found
    DeviceBlockIndex(DeviceSpan memory, TierListener listener) {
        this.memory = memory;
        this.listener = listener;
    }

    private static BlockKey key(DeviceEntry entry) {
        return new BlockKey(entry.block().keyHi(), entry.block().keyLo());
    }

    /// Makes an entry known. After [#close] it does nothing, as copies may end later.
    void add(DeviceEntry entry) {
        if (!closed) {
            entries.put(key(entry), entry);
            report(entry, true);
        }
    }

    /// Forgets an entry, if it is the one that counts.
    void remove(DeviceEntry entry) {
        if (withdraw(entry)) {
            report(entry, false);
        }
    }

    /// Makes an entry unknown that is about to be moved: [#add] or [#reportLost] says later what came of it.
    ///
    /// @return whether it was known
    boolean withdraw(DeviceEntry entry) {
        return entries.remove(key(entry), entry);
    }

    /// A withdrawn entry does not return; a newer one of its block may be known.
    void reportLost(DeviceEntry entry) {
        if (!entries.containsKey(key(entry))) {
            report(entry, false);
        }
    }

    private void report(DeviceEntry entry, boolean isPresent) {
        listener.onDeviceCopy(entry.block().keyHi(), entry.block().keyLo(), isPresent);
    }

    /// Returns whether an entry is the current one of its block. Any thread.
    boolean contains(DeviceEntry entry) {
        return entry.equals(entries.get(key(entry)));
    }

    void tombstone(Tombstone tombstone) {
        if (tombstone.isNamespace()) {
            List.copyOf(entries.values()).stream()
                    .filter(entry -> entry.isCoveredBy(tombstone))
                    .forEach(this::remove);
            return;
        }
        DeviceEntry entry = entries.get(new BlockKey(tombstone.keyHi(), tombstone.keyLo()));
        if (entry != null) {
            remove(entry);
        }
    }

    /// Nothing is found from here on: the memory is about to be given away.
    void close() {
        closed = true;
        List.copyOf(entries.values()).forEach(this::remove);
    }

    /// Reports to the store what was used by [#acquire], of which the store does not hear otherwise.
    ///
    /// @return how many uses
    int reportUses() {
        for (int reported = 0; reported < MAX_UNREPORTED; reported++) {
            DeviceEntry used = unreportedUses.poll();
            if (used == null) {
                return reported;
            }
            listener.onUsed(used.block(), used.place());
        }
        return MAX_UNREPORTED;
    }

    /// Pins the leading blocks of a chain that are in one of several, from one on.
    static DeviceBlockTable acquire(List<DeviceBlockIndex> indexes, BlockChain chain, int from) {
        List<DeviceEntry> held = new ArrayList<>();
        List<DeviceBlockIndex> holders = new ArrayList<>();
        for (int index = from; index < chain.length(); index++) {
            DeviceBlockIndex holder = pin(indexes, chain.key(index), held);
            if (holder == null) {
                break;
            }
            holders.add(holder);
        }
        for (int i = held.size() - 1; i >= 0; i--) {
            holders.get(i).unreportedUses.offer(held.get(i));
        }
        return new DeviceBlockTable(from, held);
    }

    /// Pins each block of a section of a chain that is in one of several.
    static DeviceBlockMap acquireEach(List<DeviceBlockIndex> indexes, BlockChain chain, int from, int to) {
        SortedMap<Integer, DeviceEntry> held = new TreeMap<>();
        Set<DeviceSpan> memory = new LinkedHashSet<>();
        List<DeviceEntry> pinned = new ArrayList<>();
        for (int index = to - 1; index >= from; index--) {
            DeviceBlockIndex holder = pin(indexes, chain.key(index), pinned);
            if (holder != null) {
                held.put(index, pinned.getLast());
                memory.add(holder.memory);
                holder.unreportedUses.offer(pinned.getLast());
            }
        }
        return new DeviceBlockMap(held, memory);
    }

    /// Pins a block in the first that has it, and adds it to others.
    ///
    /// @return the one that has it, or null
    private static @Nullable DeviceBlockIndex pin(
            List<DeviceBlockIndex> indexes, BlockKey key, List<DeviceEntry> held) {
        for (DeviceBlockIndex each : indexes) {
            DeviceEntry entry = each.pin(key);
            if (entry != null) {
                held.add(entry);
                return each;
            }
        }
        return null;
    }

    /// A region may be closed and begun anew between the look and the pin: then the entry is no longer
    /// here.
    private @Nullable DeviceEntry pin(BlockKey key) {
        DeviceEntry entry = entries.get(key);
        if (entry == null || !entry.region().pin()) {
            return null;
        }
        if (!entry.equals(entries.get(key))) {
            entry.region().unpin();
            return null;
        }
        return entry;
    }
}
