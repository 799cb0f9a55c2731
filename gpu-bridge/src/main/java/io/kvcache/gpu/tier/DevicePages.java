package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import io.kvcache.gpu.tier.DeviceRegions.DeviceRegion;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The part of a tier's memory in which sequences of an engine in this process have their pages, each of one block.
/// It takes regions of the tier as it needs them, and cuts them into pages.
///
/// A page is free, or it has holders that may write to it, or it is sealed under the key of its block and never
/// changes again. A sealed page without a holder is a cached block. When pages are short, those that were held
/// longest ago are offered to the store, which keeps the half that it wants most.
///
/// A sealed page becomes the store's copy on the device, where it lies, when the store writes a block with its key
/// and checksum to the tier. Before, the store does not know it.
///
/// **Threads.** Any; the tier's thread makes pages free.
public final class DevicePages {

    /// Pages that are kept free by evicting others, as a share of all.
    private static final int FREE_SHARE = 16;

    private static final int MAX_FREE = 32;

    private final DeviceSpan allocation;
    private final DeviceBlockIndex index;
    private final Runnable wake;
    private final int blockBytes;
    private final long pageBytes;
    private final int maxPages;
    private final int maxRegions;
    private final Namespace namespace;
    private final List<DeviceRegion> taken = new ArrayList<>();
    private final List<Page> pages = new ArrayList<>();
    private final Deque<Page> free = new ArrayDeque<>();
    private final Map<BlockKey, Page> sealed = new HashMap<>();
    /// Sealed and without a holder, in the order in which they lost the last one.
    private final Set<Page> idle = new LinkedHashSet<>();
    /// To be free once nothing reads there.
    private final Set<Page> leaving = new HashSet<>();

    private int evicting;
    private int demand;
    private boolean closed;
    private boolean failed;

    /// @param allocation the tier's memory
    /// @param index of the tier's blocks
    /// @param wake has the tier's thread look here
    /// @param namespace of one part
    /// @param maxPages at most
    /// @param pagesOfRegion that a region is cut into
    DevicePages(
            DeviceSpan allocation,
            DeviceBlockIndex index,
            Runnable wake,
            Namespace namespace,
            int maxPages,
            int pagesOfRegion) {
        this.allocation = allocation;
        this.index = index;
        this.wake = wake;
        this.namespace = namespace;
        this.maxPages = maxPages;
        maxRegions = Math.ceilDiv(maxPages, pagesOfRegion);
        blockBytes = blockBytes(namespace);
        pageBytes = DeviceGeometry.pages(blockBytes);
    }

    static int blockBytes(Namespace namespace) {
        return Math.toIntExact(namespace.blockBytes());
    }

    /// Pages at most.
    public int maxPages() {
        return maxPages;
    }

    /// Regions that it has or may take.
    synchronized int maxRegions() {
        return closed ? taken.size() : maxRegions;
    }

    /// Room for one block, or a block of the tier that is held like a page.
    public final class Page {

        private final DeviceRegion region;
        private final DeviceSpan span;
        private final boolean isBlockOfTier;
        private int holders;
        private @Nullable BlockKey key;
        private @Nullable BlockKey parent;
        private @Nullable Integer checksum;
        private @Nullable DeviceEntry entry;

        private Page(DeviceRegion region, DeviceSpan span, boolean isBlockOfTier) {
            this.region = region;
            this.span = span;
            this.isBlockOfTier = isBlockOfTier;
        }

        /// Returns where it lies.
        public DeviceSpan span() {
            return span;
        }

        /// Returns whether it is a block that the tier may write over as soon as it is released.
        public boolean isBlockOfTier() {
            return isBlockOfTier;
        }

        /// Returns whether its holder may write to it: it is the only one, and the page is not sealed.
        public boolean isWritable() {
            synchronized (DevicePages.this) {
                return !isBlockOfTier && key == null && holders == 1;
            }
        }
    }

    /// Returns the tier's memory, for a driver that has to adopt it.
    public DeviceSpan allocation() {
        return allocation;
    }

    /// Takes a free page.
    ///
    /// @return null when there is none now; see [#available]
    public synchronized @Nullable Page take() {
        Page page = free.poll();
        if (page != null) {
            boolean pinned = page.region.pin();
            assert pinned : "a free page cannot be pinned";
            page.holders = 1;
            demand = Math.max(0, demand - 1);
        }
        if (free.size() < lowWater()) {
            wake.run();
        }
        return page;
    }

    /// Has the tier's thread make as many pages free, if they are to be had.
    public synchronized void demand(int count) {
        demand = Math.min(count, maxPages);
        if (free.size() < demand) {
            wake.run();
        }
    }

    /// Pages that are free, may be taken of the tier, or can be evicted.
    public synchronized int available() {
        return closed ? 0 : unused() + idle.size();
    }

    /// Pages that are free or may be taken of the tier, so that nothing is evicted for them.
    public synchronized int unused() {
        return free.size() + leaving.size() + evicting + Math.max(0, maxPages - pages.size());
    }

    /// Pages that have a holder.
    public synchronized int held() {
        return pages.size() - free.size() - leaving.size() - evicting - idle.size();
    }

    /// Sealed pages without a holder.
    public synchronized int cached() {
        return idle.size();
    }

    /// Adds a holder.
    public synchronized void hold(Page page) {
        assert page.holders > 0 : "a page without a holder";
        page.holders++;
    }

    /// Lets go of a page.
    public synchronized void release(Page page) {
        assert page.holders > 0 : "a page without a holder";
        if (--page.holders > 0) {
            return;
        }
        page.region.unpin();
        if (page.isBlockOfTier) {
            return;
        }
        if (page.key != null) {
            idle.add(page);
        } else {
            discard(page);
        }
    }

    /// It has no holder and is not found. The tier may still be reading a page that the store knew.
    private void discard(Page page) {
        if (page.region.entries().isEmpty() && !page.region.isClosed()) {
            free.add(page);
        } else {
            leaving.add(page);
            wake.run();
        }
    }

    /// Makes a full page a block that others find. It is not written to from here on.
    ///
    /// @param parent the block before it, or null for a first one
    /// @return false if another page is that block already; this one stays its holder's alone
    public synchronized boolean seal(Page page, BlockKey key, @Nullable BlockKey parent) {
        if (closed || page.key != null || sealed.putIfAbsent(key, page) != null) {
            return false;
        }
        page.key = key;
        page.parent = parent;
        return true;
    }

    /// Returns whether others find the page as this block: it was not dropped meanwhile.
    public synchronized boolean isSealed(Page page, BlockKey key) {
        return key.equals(page.key);
    }

    /// Finds a block, sealed here or written to the tier, and adds a holder.
    ///
    /// @return null when it is not on the device
    public synchronized @Nullable Page find(BlockKey key) {
        Page page = sealed.get(key);
        if (page != null) {
            if (page.holders == 0 && !page.region.pin()) {
                return null; // about to be evicted
            }
            page.holders++;
            idle.remove(page);
            if (page.entry != null) {
                index.reportUse(page.entry);
            }
            return page;
        }
        DeviceEntry entry = closed ? null : index.pin(key);
        if (entry == null) {
            return null;
        }
        index.reportUse(entry);
        Page block = new Page(entry.region(), entry.span(), true);
        block.holders = 1;
        return block;
    }

    /// Returns whether a block is a page without a holder.
    public synchronized boolean isCached(BlockKey key) {
        Page page = sealed.get(key);
        return page != null && page.holders == 0;
    }

    /// Returns whether [#find] would find a block.
    public synchronized boolean contains(BlockKey key) {
        return sealed.containsKey(key) || index.contains(key);
    }

    /// The bytes of a sealed page are in host memory too, or will be when this has returned.
    ///
    /// @param sum that they are sealed with there
    public synchronized void setChecksum(Page page, int sum) {
        if (!page.isBlockOfTier && page.key != null) {
            page.checksum = sum;
        }
    }

    /// The store writes a block to the tier: if a page has just these bytes, it is the copy. The tier's thread.
    synchronized @Nullable DeviceEntry claim(TierBlock block) {
        Page page = sealed.get(new BlockKey(block.keyHi(), block.keyLo()));
        if (page == null
                || page.checksum == null
                || page.checksum != block.checksum()
                || block.bytes() != blockBytes
                || page.region.isClosed()) {
            return null;
        }
        DeviceEntry entry = new DeviceEntry(block, page.region, page.region.sequence(), 0);
        if (page.entry == null) {
            page.region.add(entry);
        }
        page.entry = entry;
        return entry;
    }

    /// The store has dropped what a tombstone names. The tier's thread.
    synchronized void tombstone(Tombstone tombstone, TierListener listener) {
        if (!tombstone.isNamespace()) {
            drop(new BlockKey(tombstone.keyHi(), tombstone.keyLo()));
        } else if (namespace.equals(listener.namespace(tombstone.namespaceId()))) {
            List.copyOf(sealed.values()).forEach(this::drop);
        }
    }

    /// Has a block and all pages below it found no more. Their holders go on.
    public synchronized void drop(BlockKey key) {
        Deque<BlockKey> dropped = new ArrayDeque<>(List.of(key));
        for (BlockKey next = dropped.poll(); next != null; next = dropped.poll()) {
            BlockKey parent = next;
            sealed.values().stream()
                    .filter(page -> parent.equals(page.parent))
                    .forEach(page -> dropped.add(Objects.requireNonNull(page.key)));
            Page page = sealed.get(next);
            if (page != null) {
                drop(page);
            }
        }
    }

    private void drop(Page page) {
        forget(page);
        if (idle.remove(page)) {
            discard(page);
        }
    }

    private void forget(Page page) {
        sealed.remove(page.key, page);
        page.key = null;
        page.parent = null;
        page.entry = null;
        page.checksum = null;
    }

    private int lowWater() {
        return Math.max(demand, Math.clamp(pages.size() / FREE_SHARE, 1, MAX_FREE));
    }

    /// A turn of the tier's thread: has free pages, or gives all back once this is closed.
    ///
    /// @return how much was done
    int tick(DeviceRegions regions, TierListener listener) {
        int done;
        int missing;
        synchronized (this) {
            done = recycle(regions);
            missing = closed ? idle.size() : lowWater() - free.size() - leaving.size();
            if (closed && missing == 0) {
                return done + giveBack(regions);
            }
            if (missing <= 0) {
                return done;
            }
            if (!closed && pages.size() < maxPages && grow(regions)) {
                return done + 1;
            }
        }
        return done + evict(missing, listener);
    }

    /// What is leaving and no longer read is free.
    private int recycle(DeviceRegions regions) {
        int done = 0;
        for (Iterator<Page> each = leaving.iterator(); each.hasNext(); ) {
            Page page = each.next();
            if (!page.region.isBusy() && (page.region.isClosed() || page.region.close())) {
                each.remove();
                regions.forget(page.region);
                regions.open(page.region);
                free.add(page);
                done++;
            }
        }
        return done;
    }

    private boolean grow(DeviceRegions regions) {
        DeviceRegion region = regions.take();
        if (region == null) {
            return false;
        }
        taken.add(region);
        for (DeviceRegion part : region.split(pageBytes)) {
            if (pages.size() < maxPages) {
                regions.open(part);
                Page page = new Page(part, part.span(0, blockBytes), false);
                pages.add(page);
                free.add(page);
            }
        }
        return true;
    }

    /// Evicts the pages that were held longest ago. While this is open, as many more are offered, so that the store
    /// has a choice.
    private int evict(int wanted, TierListener listener) {
        List<Page> offered = closeIdle(2 * wanted);
        if (offered.isEmpty()) {
            return 0;
        }
        List<DeviceEntry> entries = new ArrayList<>();
        for (Page page : offered) {
            DeviceEntry entry = page.entry;
            if (entry != null && index.remove(entry)) {
                entries.add(entry);
            }
        }
        int maxKept = offered.size() - wanted;
        Set<DeviceEntry> kept = new HashSet<>();
        if (!entries.isEmpty()) {
            listener.onReclaim(new OfferedEntries(entries, entry -> kept.size() < maxKept && kept.add(entry)));
        }
        settle(offered, kept);
        kept.forEach(entry -> listener.onMoved(entry.block(), entry.place(), entry.place()));
        return offered.size();
    }

    /// Takes pages that were held longest ago out of use, so that their store can be asked.
    private synchronized List<Page> closeIdle(int most) {
        List<Page> closing = new ArrayList<>();
        for (Iterator<Page> each = idle.iterator(); each.hasNext() && closing.size() < most; ) {
            Page page = each.next();
            if (!page.region.isBusy() && page.region.close()) {
                each.remove();
                closing.add(page);
            }
        }
        evicting = closing.size();
        return closing;
    }

    /// Of pages that were taken out of use, those that are kept are found again, and the others leave.
    private synchronized void settle(List<Page> offered, Set<DeviceEntry> kept) {
        evicting = 0;
        for (Page page : offered) {
            DeviceEntry entry = page.entry;
            if (entry != null && kept.contains(entry)) {
                page.region.reopen();
                index.add(entry);
                idle.add(page);
            } else {
                forget(page);
                leaving.add(page);
            }
        }
    }

    /// Begins to give the memory back: nothing is found or taken from here on. What is held stays until it is
    /// released.
    public synchronized void close() {
        closed = true;
        wake.run();
    }

    /// Returns whether the tier has all its memory back.
    public synchronized boolean isGivenBack() {
        return closed && taken.isEmpty();
    }

    /// Once no page is in use, the regions go back to the tier.
    private int giveBack(DeviceRegions regions) {
        if (taken.isEmpty() || free.size() < pages.size()) {
            return 0;
        }
        pages.forEach(page -> regions.forget(page.region));
        pages.clear();
        free.clear();
        taken.forEach(regions::free);
        taken.clear();
        return 1;
    }

    /// Returns whether the device is out.
    public synchronized boolean isOut() {
        return failed;
    }

    /// Returns whether engines may be reading or writing there.
    synchronized boolean isHeld() {
        return pages.stream().anyMatch(page -> page.region.isPinned());
    }

    /// The device is out: nothing is found or taken, and the memory does not come back.
    synchronized void fail() {
        failed = true;
        closed = true;
        free.clear();
        sealed.clear();
        idle.clear();
        leaving.clear();
    }
}
