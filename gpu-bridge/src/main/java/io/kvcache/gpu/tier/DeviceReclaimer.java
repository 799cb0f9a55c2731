package io.kvcache.gpu.tier;

import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import io.kvcache.gpu.tier.DeviceRegions.DeviceRegion;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Makes regions free: offers what lies in the oldest, moves what is kept into the one that is written
/// to, and has the memory used again once nothing is on its way from or to it.
///
/// Owned by the tier's thread.
final class DeviceReclaimer {

    /// At most three quarters of a region are kept, so that each turn makes room. It is copied within the device,
    /// which is far faster than what comes to the device.
    private static final double MAX_KEPT_SHARE = 0.75;

    private final DeviceRegions regions;
    private final DeviceBlockIndex index;
    private final CopyQueue copyQueue;
    private final TierListener listener;
    private final long maxKeptBytes;
    /// Entries of the region that is being reclaimed that were in the index. Those that are moved return to it.
    private final Set<DeviceEntry> candidates = new HashSet<>();

    private @Nullable DeviceRegion leaving;
    private long movingBytes;
    private long reclaimed;
    private long kept;
    private long keptBytes;

    DeviceReclaimer(
            DeviceRegions regions,
            DeviceBlockIndex index,
            CopyQueue copyQueue,
            TierListener listener,
            DeviceGeometry geometry) {
        this.regions = regions;
        this.index = index;
        this.copyQueue = copyQueue;
        this.listener = listener;
        maxKeptBytes = (long) (MAX_KEPT_SHARE * geometry.regionBytes());
    }

    /// A turn: begins with a region when one is due, or ends what was begun.
    ///
    /// @return how much was done
    int tick() {
        DeviceRegion present = leaving;
        if (present != null) {
            return end(present);
        }
        DeviceRegion next = regions.isLowOnSpace() ? regions.oldest() : null;
        if (next == null) {
            return 0;
        }
        leaving = next;
        next.entries().stream().filter(index::remove).forEach(candidates::add);
        List<Relocation> moves = new ArrayList<>();
        movingBytes = 0;
        listener.onReclaim(new OfferedEntries(next.entries(), entry -> keep(entry, moves)));
        moves.forEach(this::move);
        return 1;
    }

    private int end(DeviceRegion region) {
        if (region.isBusy()) {
            return 0;
        }
        regions.forget(region);
        regions.free(region);
        leaving = null;
        candidates.clear();
        reclaimed++;
        return 1;
    }

    /// A tombstone finds nothing in the index of what is being moved: it is not to come back there.
    void tombstone(Tombstone tombstone) {
        candidates.removeIf(entry -> entry.isCoveredBy(tombstone));
    }

    private record Relocation(DeviceEntry from, DeviceEntry to) {}

    private void move(Relocation relocation) {
        DeviceEntry from = relocation.from;
        DeviceEntry to = relocation.to;
        from.region().beginUse();
        to.region().beginUse();
        copyQueue
                .batch()
                .add(from.span().address(), to.span().address(), to.block().bytes());
        copyQueue.onComplete(copied -> {
            from.region().endUse();
            to.region().endUse();
            if (copied) {
                kept++;
                keptBytes += to.block().bytes();
                if (candidates.contains(from)) {
                    index.add(to);
                }
                listener.onMoved(to.block(), from.place(), to.place());
            } else {
                listener.onLost(from.block(), from.place());
            }
        });
    }

    boolean isBusy() {
        return leaving != null;
    }

    long reclaimedRegions() {
        return reclaimed;
    }

    long keptBlocks() {
        return kept;
    }

    long keptBytes() {
        return keptBytes;
    }

    /// Plans to move a block, as far as there is room.
    private boolean keep(DeviceEntry from, List<Relocation> moves) {
        long pages = DeviceGeometry.pages(from.block().bytes());
        DeviceEntry to = movingBytes + pages > maxKeptBytes ? null : regions.allocate(from.block(), true);
        if (to == null) {
            return false;
        }
        movingBytes += pages;
        return moves.add(new Relocation(from, to));
    }
}
