package io.kvcache.gpu.tier;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceRegion;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Regions of the device: the one that is written to, the full ones, and the free ones.
///
/// Owned by the tier's thread.
final class DeviceRegions {

    /// Kept free by all but a reclaim, which has to have somewhere to put what it keeps.
    private static final int RESERVED = 1;

    private final Deque<DeviceRegion> free = new ArrayDeque<>();
    private final Deque<DeviceRegion> full = new ArrayDeque<>();
    private final Map<Long, DeviceRegion> bySequence = new HashMap<>();
    private final TierMemory memory;
    private final DeviceGeometry geometry;
    /// Numbers of regions without memory.
    private final Deque<Integer> absent = new ArrayDeque<>();

    private @Nullable DeviceRegion open;
    private long sequences;
    private int regions;
    private int wanted;

    /// The first region is the staging's.
    DeviceRegions(TierMemory memory, DeviceGeometry geometry) {
        this.memory = memory;
        this.geometry = geometry;
        regions = geometry.regions();
        wanted = regions;
        for (int number = 1; number < geometry.maxRegions(); number++) {
            if (number < regions) {
                free.add(region(number));
            } else {
                absent.add(number);
            }
        }
    }

    private DeviceRegion region(int number) {
        return new DeviceRegion(memory.span().slice(number * geometry.regionBytes(), geometry.regionBytes()), number);
    }

    /// Bytes of all regions that have memory.
    long bytes() {
        return regions * geometry.regionBytes();
    }

    /// Has as many regions as this from now on: at once as far as the device has memory, or as regions become free.
    void resize(int count) {
        wanted = count;
        giveBack();
        try {
            while (regions < wanted) {
                memory.add(absent.element());
                free.add(region(absent.remove()));
                regions++;
            }
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            wanted = regions; // others have the memory
        }
    }

    /// Returns whether it has as many as it should.
    boolean isResized() {
        return regions == wanted;
    }

    private void giveBack() {
        while (regions > wanted && !free.isEmpty()) {
            DeviceRegion region = free.remove();
            memory.remove(region.number);
            absent.add(region.number);
            regions--;
        }
    }

    /// Makes room for a block in the region that is written to, or in the next.
    ///
    /// @param reserve whether the last free region may be used
    /// @return null when there is none
    @Nullable
    DeviceEntry allocate(TierBlock block, boolean reserve) {
        DeviceRegion present = open;
        if (present == null || !present.fits(block.bytes())) {
            if (free.size() <= (reserve ? 0 : RESERVED)) {
                return null;
            }
            if (present != null) {
                full.add(present);
            }
            present = free.remove();
            open(present);
            open = present;
        }
        DeviceEntry entry = new DeviceEntry(block, present, present.sequence(), present.allocate(block.bytes()));
        present.add(entry);
        return entry;
    }

    /// Begins a region, or a part of one, under a number that none had before.
    void open(DeviceRegion region) {
        region.open(++sequences);
        bySequence.put(region.sequence(), region);
    }

    /// Takes a free region out of the ring, until [#free]; or null.
    @Nullable
    DeviceRegion take() {
        return free.size() > RESERVED && isResized() ? free.remove() : null;
    }

    /// The region that a place is in, or null when it is gone.
    @Nullable
    DeviceRegion regionAt(long place) {
        return bySequence.get(DeviceEntry.sequenceOf(place));
    }

    boolean isLowOnSpace() {
        return free.size() <= RESERVED || regions > wanted;
    }

    /// The oldest full region that is not in use, closed for pins; or null.
    @Nullable
    DeviceRegion oldest() {
        for (Iterator<DeviceRegion> each = full.iterator(); each.hasNext(); ) {
            DeviceRegion region = each.next();
            if (!region.isBusy() && region.close()) {
                each.remove();
                return region;
            }
        }
        return null;
    }

    /// Forgets the blocks of a region, though its memory is not free yet.
    void forget(DeviceRegion region) {
        bySequence.remove(region.sequence());
    }

    void free(DeviceRegion region) {
        free.add(region);
        giveBack();
    }

    boolean hasPinned() {
        DeviceRegion present = open;
        return (present != null && present.isPinned()) || full.stream().anyMatch(DeviceRegion::isPinned);
    }

    /// A span of the device's memory that is written front to back and then reclaimed whole.
    ///
    /// Owned by the tier's thread, but for the pins.
    static final class DeviceRegion {

        /// It cannot be pinned: its blocks are about to go.
        private static final int CLOSED = -1;

        private final DeviceSpan span;
        private final int number;
        private final List<DeviceEntry> entries = new ArrayList<>();
        private final AtomicInteger pins = new AtomicInteger();
        private long sequence;
        private long usedBytes;
        private int activeUses;

        /// @param number of the region that it is, or is a part of
        DeviceRegion(DeviceSpan span, int number) {
            this.span = span;
            this.number = number;
        }

        /// Begins it anew, under a number that no region had before.
        void open(long number) {
            sequence = number;
            usedBytes = 0;
            entries.clear();
            pins.set(0);
        }

        /// Cuts it into regions of this size, which are used in its place.
        List<DeviceRegion> split(long bytes) {
            return LongStream.range(0, span.bytes() / bytes)
                    .mapToObj(part -> new DeviceRegion(span.slice(part * bytes, bytes), number))
                    .toList();
        }

        long sequence() {
            return sequence;
        }

        boolean fits(long bytes) {
            return usedBytes + DeviceGeometry.pages(bytes) <= span.bytes();
        }

        /// Takes the next pages of it.
        ///
        /// @return their offset
        long allocate(long bytes) {
            long offset = usedBytes;
            usedBytes += DeviceGeometry.pages(bytes);
            return offset;
        }

        DeviceSpan span(long offset, long bytes) {
            return span.slice(offset, bytes);
        }

        void add(DeviceEntry entry) {
            entries.add(entry);
        }

        List<DeviceEntry> entries() {
            return entries;
        }

        void beginUse() {
            activeUses++;
        }

        void endUse() {
            assert activeUses > 0 : "no copy is on its way";
            activeUses--;
        }

        boolean isBusy() {
            return activeUses > 0;
        }

        /// Has the region stay as it is. Any thread.
        ///
        /// @return false when it is about to go
        boolean pin() {
            int held = pins.get();
            while (held != CLOSED) {
                if (pins.compareAndSet(held, held + 1)) {
                    return true;
                }
                held = pins.get();
            }
            return false;
        }

        void unpin() {
            pins.decrementAndGet();
        }

        boolean isPinned() {
            return pins.get() > 0;
        }

        /// Allows no more pins.
        ///
        /// @return false while it is pinned
        boolean close() {
            return pins.compareAndSet(0, CLOSED);
        }

        boolean isClosed() {
            return pins.get() == CLOSED;
        }

        /// It stays as it was before [#close].
        void reopen() {
            pins.set(0);
        }
    }

    /// A block in a region.
    ///
    /// @param offset within the region, in bytes
    /// @param sequence of the region when the block came there
    record DeviceEntry(TierBlock block, DeviceRegion region, long sequence, long offset) {

        /// Offsets in pages get this many bits of a place: regions of up to 64 GiB.
        private static final int OFFSET_BITS = 24;

        static long sequenceOf(long place) {
            return place >>> OFFSET_BITS;
        }

        static long offsetOf(long place) {
            return (place & ((1L << OFFSET_BITS) - 1)) * DeviceGeometry.PAGE;
        }

        /// The number that the store knows it by; of no other block ever.
        long place() {
            return sequence << OFFSET_BITS | offset / DeviceGeometry.PAGE;
        }

        /// Returns whether a tombstone covers it.
        boolean isCoveredBy(Tombstone tombstone) {
            return tombstone.isNamespace()
                    ? tombstone.namespaceId() == block.namespaceId()
                    : tombstone.keyHi() == block.keyHi() && tombstone.keyLo() == block.keyLo();
        }

        DeviceSpan span() {
            return region.span(offset, block.bytes());
        }
    }
}
