package io.kvcache.gpu.tier;

import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.Tombstone;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Makes regions free: offers what lies in the oldest, moves what is kept into the one that is written
/// to, and has the memory used again once nothing is on its way from or to it.
///
/// Owned by the tier's thread.
final class Reclaim {

    /// At most three quarters of a region are kept, so that each turn makes room. It is copied within the device, which
    /// is far faster than what comes to the device.
    private static final double KEPT_SHARE = 0.75;

    private final Regions regions;
    private final DeviceIndex index;
    private final Lane lane;
    private final TierListener listener;
    private final long mostKeptBytes;
    /// Of the region that leaves, what engines found there, and are to find where it is moved to.
    private final Set<DeviceEntry> found = new HashSet<>();

    private @Nullable Region leaving;
    private long reclaimed;
    private long kept;
    private long keptBytes;

    Reclaim(Regions regions, DeviceIndex index, Lane lane, TierListener listener, DeviceGeometry geometry) {
        this.regions = regions;
        this.index = index;
        this.lane = lane;
        this.listener = listener;
        mostKeptBytes = (long) (KEPT_SHARE * geometry.regionBytes());
    }

    /// A turn: begins with a region when one is due, or ends what was begun.
    ///
    /// @return how much was done
    int tick() {
        Region present = leaving;
        if (present != null) {
            return end(present);
        }
        Region next = regions.scarce() ? regions.oldest() : null;
        if (next == null) {
            return 0;
        }
        leaving = next;
        next.entries().stream().filter(index::remove).forEach(found::add);
        Offer offer = new Offer(next.entries());
        listener.onReclaim(offer);
        offer.moves.forEach(this::move);
        return 1;
    }

    private int end(Region region) {
        if (region.busy()) {
            return 0;
        }
        regions.forget(region);
        regions.free(region);
        leaving = null;
        found.clear();
        reclaimed++;
        return 1;
    }

    /// A burial finds nothing in the index of what is being moved: it is not to come back there.
    void bury(Tombstone burial) {
        found.removeIf(entry -> entry.buriedBy(burial));
    }

    /// From and to.
    private record Move(DeviceEntry from, DeviceEntry to) {}

    private void move(Move move) {
        DeviceEntry from = move.from;
        DeviceEntry to = move.to;
        from.region().use();
        to.region().use();
        lane.batch().add(from.span().address(), to.span().address(), to.block().bytes());
        lane.then(copied -> {
            from.region().endUse();
            to.region().endUse();
            if (copied) {
                kept++;
                keptBytes += to.block().bytes();
                if (found.contains(from)) {
                    index.add(to);
                }
                listener.onMoved(to.block(), from.place(), to.place());
            } else {
                listener.onLost(from.block(), from.place());
            }
        });
    }

    boolean busy() {
        return leaving != null;
    }

    long reclaimed() {
        return reclaimed;
    }

    long kept() {
        return kept;
    }

    long keptBytes() {
        return keptBytes;
    }

    /// What lies in a region, and what of it is kept.
    private final class Offer implements ReclaimCandidates {

        private final List<DeviceEntry> entries;
        private final List<Move> moves = new ArrayList<>();
        private long bytes;

        Offer(List<DeviceEntry> entries) {
            this.entries = entries;
        }

        @Override
        public int size() {
            return entries.size();
        }

        @Override
        public long keyHi(int index) {
            return entries.get(index).block().keyHi();
        }

        @Override
        public long keyLo(int index) {
            return entries.get(index).block().keyLo();
        }

        @Override
        public long place(int index) {
            return entries.get(index).place();
        }

        @Override
        public boolean keep(int index) {
            DeviceEntry from = entries.get(index);
            long pages = DeviceGeometry.pages(from.block().bytes());
            if (bytes + pages > mostKeptBytes) {
                return false;
            }
            DeviceEntry to = regions.place(from.block(), true);
            if (to == null) {
                return false;
            }
            bytes += pages;
            moves.add(new Move(from, to));
            return true;
        }
    }
}
