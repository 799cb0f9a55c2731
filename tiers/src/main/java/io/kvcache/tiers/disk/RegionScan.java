package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/// Finds out what every region holds, from its footer, and where that does not tell, from its first head:
///
/// ```
/// footer           first head            the region
/// closed           not looked at         is closed, in the footer's life
/// open             not looked at         was open, in the footer's life
/// free             of a later life       was open, in the head's life
/// free, or zeroes  of no later life      is free
/// zeroes, or else  sound                 was open or closed, in the head's life
/// anything else                          holds nothing that can be found; is marked as free before it is opened
/// ```
///
/// Nothing of an earlier life is believed: a region is opened only when its footer says durably that it is
/// free, and the footer is written over only when all batches are durable. So where a footer is torn, the
/// first head is of the life that was ending, and nothing had been written over its blocks.
///
/// A region whose life is over, as any footer says, holds nothing either.
final class RegionScan {

    private final LogIo io;
    private final RegionTable regionTable;
    private final PagePool pages;
    private final List<Region> found = new ArrayList<>();
    private final List<Region> unmarked = new ArrayList<>();
    private int next;
    private int done;

    RegionScan(LogIo io, RegionTable regionTable, PagePool pages) {
        this.io = io;
        this.regionTable = regionTable;
        this.pages = pages;
    }

    /// Starts to look at as many regions as there are pages to read into.
    void pump() {
        MemorySegment page;
        while (next < regionTable.count() && (page = pages.acquire()) != null) {
            new RegionProbe(regionTable.get(next++), page).start();
        }
    }

    boolean isComplete() {
        return done == regionTable.count();
    }

    /// Regions that hold something, newest first.
    List<Region> newestFirst() {
        return found.stream()
                .filter(region -> region.epoch() > regionTable.endedEpoch())
                .sorted(Comparator.comparingLong(Region::epoch).reversed())
                .toList();
    }

    /// Regions that hold nothing, whose footers do not say so.
    List<Region> unmarked() {
        Stream<Region> over = found.stream().filter(region -> region.epoch() <= regionTable.endedEpoch());
        return Stream.concat(unmarked.stream(), over).toList();
    }

    private final class RegionProbe {

        private static final long NEVER_USED = -1;

        private final Region region;
        private final MemorySegment page;
        private boolean marked;
        private long freeSince = NEVER_USED;

        RegionProbe(Region region, MemorySegment page) {
            this.region = region;
            this.page = page;
        }

        void start() {
            io.read(page, regionTable.footerOffset(region), this::onFooterRead);
        }

        private void onFooterRead(IoOutcome outcome) {
            RegionFooter footer = outcome.isDone()
                    ? RegionFooter.read(page, regionTable.geometry().regionPages())
                    : null;
            if (footer != null && regionTable.isEpochOf(region, footer.epoch())) {
                freeSince = footer.epoch().number();
                regionTable.onEpochFound(freeSince);
                regionTable.endEpoch(footer.endedEpoch());
                if (!footer.isFree()) {
                    foundEpoch(freeSince);
                    return;
                }
                marked = true;
            } else {
                marked = outcome.isDone() && MetadataCrc.isBlank(page);
            }
            io.read(page, regionTable.offset(region, 0), this::onHeadRead);
        }

        private void onHeadRead(IoOutcome outcome) {
            WriteBatchHeader head = outcome.isDone() ? WriteBatchHeader.read(page) : null;
            boolean counts = head != null
                    && head.page() == 0
                    && regionTable.isEpochOf(region, head.epoch())
                    && head.epoch().number() > freeSince;
            if (head != null && counts) {
                regionTable.onEpochFound(head.epoch().number());
                foundEpoch(head.epoch().number());
            } else if (marked && outcome.isDone()) {
                regionTable.addFree(region);
                finish();
            } else {
                unmarked.add(region);
                finish();
            }
        }

        private void foundEpoch(long epoch) {
            region.setEpoch(epoch);
            region.transitionTo(Region.State.CLOSING);
            found.add(region);
            finish();
        }

        private void finish() {
            pages.release(page);
            done++;
        }
    }
}
