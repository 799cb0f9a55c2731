package io.kvcache.tiers.disk;

import java.util.ArrayList;
import java.util.List;

/// A region that groups are added to, until its trailer is written.
final class OpenRegion {

    private final Region region;
    private final Life life;
    private final int regionPages;
    private final Predecessor predecessor;
    private final List<PlacedGroup> groups = new ArrayList<>();
    private int nextPage;
    private int entries;
    private int flying;
    private boolean broken;
    private int followed;
    private Durable written = Durable.NOTHING;
    private Durable marked = Durable.NOTHING;

    OpenRegion(Regions regions, Region region, Predecessor predecessor) {
        this.region = region;
        this.life = regions.life(region);
        this.regionPages = regions.geometry().regionPages();
        this.predecessor = predecessor;
    }

    /// A region that was open when the log ended; no more is added to it, because the remains of groups that
    /// were never finished may lie behind its last whole one. Its trailer is not written in the order of
    /// lives, so it names no predecessor.
    static OpenRegion recovered(Regions regions, Region region, List<DiskEntry> entries) {
        OpenRegion open = new OpenRegion(regions, region, Predecessor.UNKNOWN);
        open.entries = entries.size();
        open.groups.add(new PlacedGroup(new Group(open.life, 0, 0, entries), true));
        return open;
    }

    Region region() {
        return region;
    }

    Life life() {
        return life;
    }

    /// Whether a group of so many entries, of so many pages without its head, fits before the trailer.
    boolean fits(int count, long pages) {
        return pages <= room(count);
    }

    /// Pages for the blocks of one more group of so many entries; negative when they do not fit.
    int room(int count) {
        if (entries + count > Trailer.maxEntries(regionPages)) {
            return -1;
        }
        return regionPages - nextPage - Group.HEAD_PAGES - Trailer.pages(entries + count);
    }

    /// Places a group at the end.
    PlacedGroup place(List<DiskEntry> blocks) {
        PlacedGroup placed = new PlacedGroup(Group.of(life, nextPage, blocks), false);
        groups.add(placed);
        nextPage += placed.group().pages();
        entries += blocks.size();
        flying++;
        return placed;
    }

    /// A group has ended. After one that failed, later heads are not found without the trailer.
    void ended(PlacedGroup placed) {
        flying--;
        broken |= !placed.written();
    }

    /// What the groups from the first on take that have been written, without one before them that has not.
    Durable written() {
        while (followed < groups.size() && groups.get(followed).written()) {
            written = written.and(groups.get(followed++).group());
        }
        return written;
    }

    /// The footer is about to say what is durable; the trailer waits until it does.
    ///
    /// @return whether it does not say so yet
    boolean beginMark(Durable durable) {
        boolean more = durable.pages() > marked.pages();
        if (more) {
            marked = durable;
            flying++;
        }
        return more;
    }

    void endMark() {
        flying--;
    }

    /// Whether it may hold entries that replace others.
    boolean replaces() {
        return groups.stream()
                .anyMatch(placed -> Durable.replacing(placed.group().entries()) > 0);
    }

    /// Groups, and the footer, on their way.
    int flying() {
        return flying;
    }

    /// Whether a group failed.
    boolean broken() {
        return broken;
    }

    Trailer trailer(long over) {
        List<DiskEntry> written = new ArrayList<>(entries);
        for (PlacedGroup placed : groups) {
            if (placed.written()) {
                written.addAll(placed.group().entries());
            }
        }
        return new Trailer(life, written, over, predecessor);
    }
}
