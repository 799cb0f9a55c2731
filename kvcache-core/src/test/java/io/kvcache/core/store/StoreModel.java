package io.kvcache.core.store;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The naive model of a store: maps of what was put and not dropped. It does not know what the store
/// evicted, so a sealed entry may be found or not; everything else it knows exactly.
final class StoreModel {

    enum Stage {
        OPEN,
        FILLED,
        SEALED
    }

    /// One incarnation of a block or object.
    static final class Entry {
        final BlockKey key;
        final @Nullable BlockKey parent;
        final int space;
        final long bytes;
        final long version;
        Stage stage = Stage.OPEN;

        /// Dropped, abandoned or replaced; a pin may still hold its bytes.
        boolean gone;

        Entry(BlockKey key, @Nullable BlockKey parent, int space, long bytes, long version) {
            this.key = key;
            this.parent = parent;
            this.space = space;
            this.bytes = bytes;
            this.version = version;
        }

        BlockContent content() {
            return BlockContent.of(key).withVersion(version);
        }
    }

    private final Map<BlockKey, Entry> entries = new HashMap<>();

    /// Objects that are being written, over a sealed one or beside others.
    private final Map<BlockKey, List<Entry>> successors = new HashMap<>();

    private long versions;

    Entry open(BlockKey key, @Nullable BlockKey parent, int space, long bytes) {
        Entry entry = new Entry(key, parent, space, bytes, versions++);
        open(entry);
        return entry;
    }

    private void open(Entry entry) {
        if (entries.get(entry.key) == null || entry.parent != null) {
            entries.put(entry.key, entry);
        } else {
            successors.computeIfAbsent(entry.key, _ -> new ArrayList<>()).add(entry);
        }
    }

    @Nullable
    Entry get(BlockKey key) {
        return entries.get(key);
    }

    /// Returns whether a writer is at the key, or has filled it and waits for its parent.
    boolean beingWritten(BlockKey key) {
        Entry known = entries.get(key);
        return successors.containsKey(key) || (known != null && known.stage != Stage.SEALED);
    }

    boolean sealed(BlockKey key) {
        Entry known = entries.get(key);
        return known != null && known.stage == Stage.SEALED;
    }

    Iterable<Entry> all() {
        return entries.values();
    }

    int size() {
        return entries.size();
    }

    /// Models [HostStore#seal] for an entry that is not gone; returns whether it is findable now.
    boolean seal(Entry entry) {
        if (entry.parent != null && !sealed(entry.parent)) {
            entry.stage = Stage.FILLED;
            return false;
        }
        if (leavesSuccessors(entry)) {
            Entry older = entries.put(entry.key, entry);
            if (older != null && older.stage == Stage.SEALED) {
                older.gone = true;
            } else if (older != null) {
                successors.computeIfAbsent(entry.key, _ -> new ArrayList<>()).add(older);
            }
        }
        entry.stage = Stage.SEALED;
        for (Entry child : children(entry)) {
            if (child.stage == Stage.FILLED) {
                seal(child);
            }
        }
        return true;
    }

    /// Forgets an entry, its successor and all below it; answers what went.
    List<Entry> forget(BlockKey key) {
        List<Entry> gone = new ArrayList<>();
        forget(key, gone);
        gone.forEach(entry -> entry.gone = true);
        return gone;
    }

    private void forget(BlockKey key, List<Entry> gone) {
        List<Entry> all = successors.remove(key);
        if (all != null) {
            gone.addAll(all);
        }
        Entry entry = entries.remove(key);
        if (entry != null) {
            children(entry).forEach(child -> forget(child.key, gone));
            gone.add(entry);
        }
    }

    /// Forgets one that its writer abandons, and all below it.
    List<Entry> abandon(Entry entry) {
        if (leavesSuccessors(entry)) {
            entry.gone = true;
            return List.of(entry);
        }
        if (entry.gone) {
            return List.of();
        }
        List<Entry> others = successors.remove(entry.key);
        List<Entry> gone = forget(entry.key);
        if (others != null) {
            others.forEach(this::open);
        }
        return gone;
    }

    /// Forgets an object that the store has evicted; those that write it stay.
    void evicted(BlockKey key) {
        Entry known = entries.get(key);
        if (known != null && known.stage == Stage.SEALED) {
            abandon(known);
        }
    }

    /// Takes an entry from those that are being written beside another; answers whether it was among them.
    private boolean leavesSuccessors(Entry entry) {
        List<Entry> all = successors.get(entry.key);
        boolean was = all != null && all.remove(entry);
        if (was && all != null && all.isEmpty()) {
            successors.remove(entry.key);
        }
        return was;
    }

    private List<Entry> children(Entry parent) {
        return entries.values().stream()
                .filter(entry -> parent.key.equals(entry.parent))
                .toList();
    }
}
