package io.kvcache.tiers.disk;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;

/// Versions appended and deleted under each key, in order, and the oldest to which a crash may go back. An entry
/// carries its version as its depth; a tombstone is a version too.
final class KeyVersions {

    private final Map<Long, Integer> latest = new HashMap<>();
    private final Map<Long, NavigableSet<Integer>> written = new HashMap<>();
    private final Map<Long, Integer> least = new HashMap<>();

    /// Versions by key, by tag.
    private final Map<Long, Map<Long, Integer>> flying = new HashMap<>();

    /// Keys that an index must ignore from now on when recovery reports them.
    private final Set<Long> buried = new HashSet<>();

    private boolean allBuried;

    void addTombstone(DiskEntry tombstone) {
        allBuried |= tombstone.isNamespaceTombstone();
        addTombstone(tombstone.keyHi());
    }

    void addTombstone(long key) {
        buried.add(key);
    }

    boolean isTombstoned(long key) {
        return allBuried || buried.contains(key);
    }

    /// The next version of a key, which is on its way under a tag.
    int next(long key, long tag) {
        int version = latest.merge(key, 0, (last, _) -> last + 1);
        flying.computeIfAbsent(tag, _ -> new HashMap<>()).put(key, version);
        return version;
    }

    /// All keys that ever had a version.
    Collection<Long> keys() {
        return List.copyOf(latest.keySet());
    }

    boolean isLatest(long key, int version) {
        return latest.getOrDefault(key, -1) == version;
    }

    /// Returns the promise of a flush if all operations in flight succeed.
    Map<Long, Integer> snapshot() {
        return Map.copyOf(latest);
    }

    void ended(long tag, boolean isWritten) {
        Map<Long, Integer> ended = flying.getOrDefault(tag, Map.of());
        flying.remove(tag);
        if (isWritten) {
            ended.forEach((key, version) ->
                    written.computeIfAbsent(key, _ -> new TreeSet<>()).add(version));
        }
    }

    /// A flush has made durable what was promised, as far as it was written.
    void markDurable(Map<Long, Integer> promised) {
        promised.forEach((key, version) -> {
            Integer last = written.getOrDefault(key, new TreeSet<>()).floor(version);
            if (last != null) {
                least.merge(key, last, Math::max);
            }
        });
    }

    /// The earliest version of a key that may be found.
    int minVersion(long key) {
        return least.getOrDefault(key, 0);
    }

    /// Operations in flight are lost, and unflushed writes may be.
    void crash() {
        flying.clear();
        written.clear();
        buried.clear();
        allBuried = false;
    }

    /// Nothing of before is on the device any more.
    void forget() {
        least.clear();
    }
}
