package io.kvcache.core.store;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierOffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// What a disk would hold: copies by place in the order of their writing, and burials between them. Of a block's
/// bytes it keeps the first eight.
final class FakeDisk {

    private final Map<Long, Copy> copies = new LinkedHashMap<>();
    private long next;

    /// A copy, or a burial when it has no content.
    record Copy(TierBlock block, long content, boolean burial) {}

    long write(TierBlock block, MemorySegment first) {
        return put(new Copy(block, first.get(ValueLayout.JAVA_LONG, 0), false));
    }

    void bury(TierBlock block) {
        put(new Copy(block, 0, true));
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
    void tell(Disks disks, int disk) {
        List<Map.Entry<Long, Copy>> newestFirst = new ArrayList<>(copies.entrySet()).reversed();
        for (Map.Entry<Long, Copy> each : newestFirst) {
            if (each.getValue().burial) {
                disks.buried(
                        disk,
                        each.getValue().block.keyHi(),
                        each.getValue().block.keyLo());
            } else {
                disks.found(disk, each.getValue().block, each.getKey());
            }
        }
        disks.restored();
    }

    /// Reclaims the oldest copies: offers them, moves what is kept, drops the rest.
    void reclaim(Disks disks, int disk, int count, int most) {
        List<Map.Entry<Long, Copy>> oldest =
                copies.entrySet().stream().limit(count).map(Map.Entry::copyOf).toList();
        Offer offer = new Offer(
                oldest.stream().filter(each -> !each.getValue().burial).toList(), most);
        disks.offered(disk, offer);
        for (Map.Entry<Long, Copy> each : offer.kept) {
            long to = put(each.getValue());
            disks.moved(disk, each.getValue().block, each.getKey(), to);
        }
        oldest.forEach(each -> copies.remove(each.getKey()));
    }

    private static final class Offer implements TierOffer {
        private final List<Map.Entry<Long, Copy>> all;
        private final List<Map.Entry<Long, Copy>> kept = new ArrayList<>();
        private final int most;

        Offer(List<Map.Entry<Long, Copy>> all, int most) {
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
        public long place(int index) {
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
