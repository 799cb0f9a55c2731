package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Reads the entries of one region at a time: from its trailer, or, if that is not there or damaged, from the
/// heads of its groups, from the first to the first that is not of this life.
final class RegionEntries {

    private final Io io;
    private final Regions regions;
    private final MemorySegment page;
    private final MemorySegment span;
    private final MemorySegment table;
    private Region region = new Region(-1);
    private int count;
    private int torn;
    private int nextHead;
    private boolean ready = true;
    private boolean complete;
    private boolean unclosed;
    private Predecessor predecessor = Predecessor.UNKNOWN;
    private Durable durable = Durable.NOTHING;
    private Durable found = Durable.NOTHING;

    /// @param memory [#bytes] of it
    RegionEntries(Io io, Regions regions, MemorySegment memory) {
        this.io = io;
        this.regions = regions;
        this.page = memory.asSlice(0, Geometry.PAGE_BYTES);
        this.span = memory.asSlice(Geometry.PAGE_BYTES, GroupCheck.SPAN_BYTES);
        this.table = memory.asSlice(Geometry.PAGE_BYTES + GroupCheck.SPAN_BYTES);
    }

    /// Memory for regions of so many pages.
    static long bytes(int regionPages) {
        return (1L + Trailer.maxTablePages(regionPages)) * Geometry.PAGE_BYTES + GroupCheck.SPAN_BYTES;
    }

    /// Begins to read the entries of a region, of the life that it is in.
    void read(Region next) {
        assert ready : "one at a time";
        region = next;
        count = 0;
        torn = 0;
        nextHead = 0;
        ready = false;
        complete = false;
        unclosed = false;
        predecessor = Predecessor.UNKNOWN;
        durable = Durable.NOTHING;
        found = Durable.NOTHING;
        io.transfers().add(Transfer.read(page, regions.footerOffset(region), this::footer));
    }

    Region region() {
        return region;
    }

    /// Whether all has been read; then the rest may be asked for.
    boolean ready() {
        return ready;
    }

    int count() {
        return count;
    }

    DiskEntry entry(int index) {
        return EntryTable.read(table, index);
    }

    /// Entries that were left out, because only their head vouches for them and they are not whole.
    int torn() {
        return torn;
    }

    /// Whether these are known to be all entries of the region.
    boolean complete() {
        return complete;
    }

    /// Whether the footer could be read and does not say that the region is closed.
    boolean unclosed() {
        return unclosed;
    }

    /// Entries that were durable, as the footer says, and are not found any more: what held them is damaged.
    int lost() {
        return complete ? 0 : Math.max(0, durable.entries() - found.entries());
    }

    /// Whether what is lost may have replaced earlier entries by other content, or have buried them.
    boolean losesReplacing() {
        boolean known = durable.replacing() != Footer.UNKNOWN;
        return lost() > 0 && (!known || durable.replacing() > found.replacing());
    }

    /// What the trailer names, unknown when there is none.
    Predecessor predecessor() {
        return predecessor;
    }

    private void footer(IoOutcome outcome) {
        Footer footer = outcome.isDone() ? Footer.read(page, pages()) : null;
        boolean own = footer != null && footer.life().equals(regions.life(region));
        boolean closed = own && footer != null && footer.isClosed();
        unclosed = outcome.isDone() && !closed;
        if (own && footer != null && !footer.isFree()) {
            durable = footer.durable();
            predecessor = footer.predecessor();
        }
        if (footer == null || !closed) {
            readHead();
        } else if (footer.entries() == 0) {
            end(true);
        } else {
            MemorySegment rows = table.asSlice(0, footer.tableBytes());
            long offset = regions.offset(region, footer.tablePage());
            io.transfers().add(Transfer.read(rows, offset, read -> table(footer, rows, read)));
        }
    }

    private void table(Footer footer, MemorySegment rows, IoOutcome outcome) {
        if (outcome.isDone() && Checksum.of(rows) == footer.tableChecksum()) {
            count = footer.entries();
            end(true);
        } else {
            readHead();
        }
    }

    private void readHead() {
        io.transfers().add(Transfer.read(page, regions.offset(region, nextHead), this::head));
    }

    private void head(IoOutcome outcome) {
        Group group = outcome.isDone() ? Group.read(page) : null;
        boolean next = group != null
                && group.life().equals(regions.life(region))
                && group.page() == nextHead
                && group.page() + group.pages() < pages();
        if (group != null && next && group.page() + group.pages() <= durable.pages()) {
            add(group, group.entries()); // durable: bytes that went bad since must not bring an older copy back
        } else if (group != null && next) {
            GroupCheck.Source source = new GroupCheck.Source(io.transfers(), regions, region, span);
            new GroupCheck(source, group, sound -> add(group, sound)).read();
        } else {
            end(false);
        }
    }

    private void add(Group group, List<DiskEntry> sound) {
        for (DiskEntry entry : sound) {
            EntryTable.write(table, count++, entry);
        }
        torn += group.entries().size() - sound.size();
        if (unclosed && nextHead < durable.pages()) {
            found = found.and(group);
        } else if (!unclosed) {
            found = new Durable(0, found.entries() + sound.size(), found.replacing() + Durable.replacing(sound));
        }
        nextHead += group.pages();
        readHead();
    }

    private void end(boolean all) {
        complete = all;
        ready = true;
    }

    private int pages() {
        return regions.geometry().regionPages();
    }
}
