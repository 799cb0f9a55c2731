package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.util.ArrayList;
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
    private boolean closed;

    /// @param memory that its blocks lie in
    DeviceBlockIndex(DeviceSpan memory) {
        this.memory = memory;
    }

    private static BlockKey key(DeviceEntry entry) {
        return new BlockKey(entry.block().keyHi(), entry.block().keyLo());
    }

    /// Makes an entry known. After [#close] it does nothing, as copies may end later.
    void add(DeviceEntry entry) {
        if (!closed) {
            entries.put(key(entry), entry);
        }
    }

    /// Forgets an entry, if it is the one that counts.
    ///
    /// @return whether it was
    boolean remove(DeviceEntry entry) {
        return entries.remove(key(entry), entry);
    }

    void tombstone(Tombstone tombstone) {
        if (tombstone.isNamespace()) {
            entries.values().removeIf(entry -> entry.isCoveredBy(tombstone));
        } else {
            entries.remove(new BlockKey(tombstone.keyHi(), tombstone.keyLo()));
        }
    }

    /// Nothing is found from here on: the memory is about to be given away.
    void close() {
        closed = true;
        entries.clear();
    }

    boolean contains(BlockKey key) {
        return entries.containsKey(key);
    }

    /// Notes a use, to be reported to the store.
    void reportUse(DeviceEntry entry) {
        unreportedUses.offer(entry);
    }

    /// Reports to the store what was used by [#acquire], of which the store does not hear otherwise.
    ///
    /// @return how many uses
    int reportUses(TierListener listener) {
        for (int reported = 0; reported < MAX_UNREPORTED; reported++) {
            DeviceEntry used = unreportedUses.poll();
            if (used == null) {
                return reported;
            }
            listener.onUsed(used.block(), used.place());
        }
        return MAX_UNREPORTED;
    }

    /// Pins the leading blocks of a chain that are here, from one on.
    DeviceBlockTable acquire(BlockChain chain, int from) {
        List<DeviceEntry> held = new ArrayList<>();
        DeviceEntry next = from < chain.length() ? pin(chain.key(from)) : null;
        while (next != null) {
            held.add(next);
            int index = from + held.size();
            next = index < chain.length() ? pin(chain.key(index)) : null;
        }
        held.reversed().forEach(unreportedUses::offer);
        return new DeviceBlockTable(from, held);
    }

    /// Pins each block of a section of a chain that is here.
    DeviceBlockMap acquireEach(BlockChain chain, int from, int to) {
        SortedMap<Integer, DeviceEntry> held = new TreeMap<>();
        for (int index = to - 1; index >= from; index--) {
            DeviceEntry entry = pin(chain.key(index));
            if (entry != null) {
                held.put(index, entry);
                unreportedUses.offer(entry);
            }
        }
        return new DeviceBlockMap(held, held.isEmpty() ? Set.of() : Set.of(memory));
    }

    /// Pins a block, or answers null. A region may be closed and begun anew between the look and the pin: then the
    /// entry is no longer here.
    @Nullable
    DeviceEntry pin(BlockKey key) {
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
