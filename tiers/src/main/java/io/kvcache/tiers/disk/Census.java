package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
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
/// free, and the footer is written over only when all groups are durable. So where a footer is torn, the
/// first head is of the life that was ending, and nothing had been written over its blocks.
///
/// A region whose life is over, as any footer says, holds nothing either.
final class Census {

    private final Io io;
    private final Regions regions;
    private final PagePool pages;
    private final List<Region> found = new ArrayList<>();
    private final List<Region> unmarked = new ArrayList<>();
    private int next;
    private int done;

    Census(Io io, Regions regions, PagePool pages) {
        this.io = io;
        this.regions = regions;
        this.pages = pages;
    }

    /// Starts to look at as many regions as there are pages to read into.
    void pump() {
        MemorySegment page;
        while (next < regions.count() && (page = pages.take()) != null) {
            new Look(regions.get(next++), page).start();
        }
    }

    boolean ended() {
        return done == regions.count();
    }

    /// Regions that hold something, newest first.
    List<Region> newestFirst() {
        return found.stream()
                .filter(region -> region.life() > regions.over())
                .sorted(Comparator.comparingLong(Region::life).reversed())
                .toList();
    }

    /// Regions that hold nothing, whose footers do not say so.
    List<Region> unmarked() {
        Stream<Region> over = found.stream().filter(region -> region.life() <= regions.over());
        return Stream.concat(unmarked.stream(), over).toList();
    }

    private final class Look {

        private static final long NEVER_USED = -1;

        private final Region region;
        private final MemorySegment page;
        private boolean marked;
        private long freeSince = NEVER_USED;

        Look(Region region, MemorySegment page) {
            this.region = region;
            this.page = page;
        }

        void start() {
            io.transfers().add(Transfer.read(page, regions.footerOffset(region), this::footer));
        }

        private void footer(IoOutcome outcome) {
            Footer footer =
                    outcome.isDone() ? Footer.read(page, regions.geometry().regionPages()) : null;
            if (footer != null && regions.belongs(region, footer.life())) {
                freeSince = footer.life().number();
                regions.seen(freeSince);
                regions.end(footer.over());
                if (!footer.isFree()) {
                    holds(freeSince);
                    return;
                }
                marked = true;
            } else {
                marked = outcome.isDone() && Seal.blank(page);
            }
            io.transfers().add(Transfer.read(page, regions.offset(region, 0), this::head));
        }

        private void head(IoOutcome outcome) {
            Group head = outcome.isDone() ? Group.read(page) : null;
            boolean counts = head != null
                    && head.page() == 0
                    && regions.belongs(region, head.life())
                    && head.life().number() > freeSince;
            if (head != null && counts) {
                regions.seen(head.life().number());
                holds(head.life().number());
            } else if (marked && outcome.isDone()) {
                regions.freed(region);
                end();
            } else {
                unmarked.add(region);
                end();
            }
        }

        private void holds(long life) {
            region.live(life);
            region.become(Region.State.CLOSING);
            found.add(region);
            end();
        }

        private void end() {
            pages.giveBack(page);
            done++;
        }
    }
}
