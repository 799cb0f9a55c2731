package io.kvcache.core.store;

import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;

/// Model of a disk's contents: copies by place in the order of their writing, and tombstones between them. Of a
/// block's bytes it keeps the first eight.
final class FakeDisk {

    private final NavigableMap<Long, Copy> copies = new TreeMap<>();
    private final NavigableMap<Long, Tombstone> tombstones = new TreeMap<>();
    private long next;

    record Copy(TierBlock block, long content) {}

    long write(TierBlock block, MemorySegment first) {
        return put(new Copy(block, first.get(ValueLayout.JAVA_LONG, 0)));
    }

    void tombstone(Tombstone tombstone) {
        tombstones.put(++next, tombstone);
    }

    private long put(Copy copy) {
        copies.put(++next, copy);
        return next;
    }

    /// Reads a copy; answers false when the place is unknown.
    boolean read(long place, MemorySegment first) {
        Copy copy = copies.get(place);
        if (copy != null) {
            first.set(ValueLayout.JAVA_LONG, 0, copy.content);
        }
        return copy != null;
    }

    int size() {
        return copies.size();
    }

    /// Tells a store everything, newest first.
    void recoverInto(TierPort tierPort, int disk) {
        Set<Integer> buriedNamespaces = new HashSet<>();
        for (long place = next; place > 0; place--) {
            Tombstone tombstone = tombstones.get(place);
            Copy copy = copies.get(place);
            if (tombstone != null && tombstone.isNamespace()) {
                buriedNamespaces.add(tombstone.namespaceId());
            } else if (tombstone != null) {
                tierPort.onTombstone(disk, tombstone.keyHi(), tombstone.keyLo());
            } else if (copy != null && !buriedNamespaces.contains(copy.block.namespaceId())) {
                tierPort.onRecovered(disk, copy.block, place);
            }
        }
        tierPort.endRecovery();
    }

    /// Reclaims the oldest copies: offers them, moves what is kept, drops the rest.
    void reclaim(TierPort tierPort, int disk, int count, int most) {
        List<Map.Entry<Long, Copy>> oldest =
                copies.entrySet().stream().limit(count).map(Map.Entry::copyOf).toList();
        Candidates candidates = new Candidates(oldest, most);
        tierPort.onReclaim(disk, candidates);
        for (Map.Entry<Long, Copy> each : candidates.kept) {
            long to = put(each.getValue());
            tierPort.onMoved(disk, each.getValue().block, each.getKey(), to);
        }
        oldest.forEach(each -> copies.remove(each.getKey()));
    }

    private static final class Candidates implements ReclaimCandidates {
        private final List<Map.Entry<Long, Copy>> all;
        private final List<Map.Entry<Long, Copy>> kept = new ArrayList<>();
        private final int most;

        Candidates(List<Map.Entry<Long, Copy>> all, int most) {
            this.all = all;
            this.most = most;
        }

        @Override
        public int size() {
            return all.size();
        }

        @Override
        public long keyHi(int index) {
            return all.get(index).getValue().block.keyHi();
        }

        @Override
        public long keyLo(int index) {
            return all.get(index).getValue().block.keyLo();
        }

        @Override
        public long address(int index) {
            return all.get(index).getKey();
        }

        @Override
        public boolean keep(int index) {
            if (kept.size() == most) {
                return false;
            }
            return kept.add(all.get(index));
        }
    }
}
