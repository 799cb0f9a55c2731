package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.SequencedSet;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Packs what is appended into groups and adds them to the open region.
///
/// A group takes what is waiting, up to 63 blocks or the limit in bytes. A few are on their way at a time;
/// what comes meanwhile waits for the next. So groups are small while there is little to do, and large when
/// there is much.
///
/// What is kept from a reclaimed region goes first, and the last free region is for it alone: callers' blocks
/// wait while no region is free beside the open one. So reclaiming always comes to its end.
final class GroupWriter {

    /// Enough for the device to be busy while the next one is packed.
    private static final int MAX_FLYING = 4;

    private final Io io;
    private final Regions regions;
    private final PagePool heads;
    private final Closing closing;
    private final LogLimits limits;
    private final Consumer<DiskEntry> begun;
    private final Queue<Append> rewrites = new ArrayDeque<>();
    private final Queue<Append> appends = new ArrayDeque<>();
    private final SequencedSet<GroupWrite> flying = new LinkedHashSet<>();
    private @Nullable OpenRegion open;
    private long taken;
    private long begunGroups;
    private long appended;
    private long appendedBytes;
    private long failed;

    /// What it works with beside the device.
    ///
    /// @param begun told of what callers appended, when a group with it is begun
    record Parts(Regions regions, PagePool heads, Closing closing, LogLimits limits, Consumer<DiskEntry> begun) {}

    GroupWriter(Io io, Parts parts) {
        this.io = io;
        this.regions = parts.regions;
        this.heads = parts.heads;
        this.closing = parts.closing;
        this.limits = parts.limits;
        this.begun = parts.begun;
    }

    boolean full() {
        return appends.size() >= limits.appends();
    }

    boolean idle() {
        return rewrites.isEmpty() && appends.isEmpty() && flying.isEmpty();
    }

    void append(DiskEntry entry, Pieces pieces, Append.Ended ended) {
        taken++;
        appends.add(new Append(entry, pieces, WriteKind.BLOCK, place -> {
            if (place == DiskPlace.NONE) {
                failed++;
            } else {
                appended++;
                appendedBytes += entry.bytes();
            }
            ended.ended(place);
        }));
    }

    /// What callers appended and is being written.
    Stream<DiskEntry> flying() {
        return flying.stream().flatMap(GroupWriter::fromCallers);
    }

    private static Stream<DiskEntry> fromCallers(GroupWrite group) {
        return group.appends().filter(append -> !append.isRewrite()).map(Append::entry);
    }

    /// Writes again what a reclaimed region held.
    void rewrite(DiskEntry entry, Pieces pieces, Append.Ended ended) {
        rewrites.add(new Append(entry, pieces, WriteKind.REWRITE, ended));
    }

    /// How many blocks were taken from callers.
    long taken() {
        return taken;
    }

    /// How many of those are in a group by now.
    long begunAppends() {
        return taken - appends.size();
    }

    /// How many groups were begun.
    long begunGroups() {
        return begunGroups;
    }

    /// How many groups, from the first on, have ended without one before them that has not.
    long endedGroups() {
        return flying.isEmpty() ? begunGroups : flying.getFirst().number();
    }

    /// What has been written of the open region.
    ///
    /// @return null when none is open
    @Nullable
    Mark written() {
        return open == null ? null : new Mark(open, open.written());
    }

    /// So much of a region.
    record Mark(OpenRegion region, Durable durable) {}

    /// Has the footer of a region that is still open say what is durable of it. Its first group has to be: while a
    /// footer is torn, the first head tells in which life the region is.
    ///
    /// @param then what follows, whether that could be written or not
    void mark(Mark mark, Runnable then) {
        OpenRegion region = mark.region();
        MemorySegment page = region.equals(open) && !io.condition().halted() ? heads.take() : null;
        if (page == null || !region.beginMark(mark.durable())) {
            if (page != null) {
                heads.giveBack(page);
            }
            then.run();
            return;
        }
        Footer.open(region.life(), mark.durable(), regions.over()).write(page);
        io.write(WriteKind.TRAILER, page, regions.footerOffset(region.region()), _ -> {
            heads.giveBack(page);
            region.endMark();
            then.run();
        });
    }

    /// Pages that can be written again for sure, each entry counted with a head of its own and a page of
    /// trailer.
    int rewritePages() {
        if (regions.free() > 0) {
            return regions.geometry().regionPages();
        }
        return open == null ? 0 : Math.max(0, open.room(0));
    }

    /// Begins what groups can be begun.
    ///
    /// @return how many
    int pump() {
        if (io.condition().halted()) {
            return refuse(rewrites) + refuse(appends);
        }
        int begun = 0;
        while (flying.size() < MAX_FLYING && begin()) {
            begun++;
        }
        return begun;
    }

    private static int refuse(Queue<Append> queue) {
        int count = queue.size();
        for (int i = 0; i < count; i++) {
            queue.remove().ended().ended(DiskPlace.NONE);
        }
        return count;
    }

    private boolean begin() {
        Append first = first();
        if (first == null) {
            return false;
        }
        OpenRegion into = regionFor(first);
        if (into == null) {
            return giveUp(first);
        }
        MemorySegment head = heads.take();
        if (head == null) {
            return false;
        }
        GroupWrite group = new GroupWrite(new GroupWrite.Cargo(begunGroups++, into, members(into), head), this::ended);
        flying.add(group);
        fromCallers(group).forEach(begun);
        group.start(io.transfers(), regions);
        return true;
    }

    private @Nullable Append first() {
        Append rewrite = rewrites.peek();
        if (rewrite != null) {
            return rewrite;
        }
        return regions.free() > 0 ? appends.peek() : null;
    }

    /// The open region if it has room, else the next one, or null when there is none.
    private @Nullable OpenRegion regionFor(Append first) {
        if (open != null && open.room(1) >= first.entry().pages()) {
            return open;
        }
        if (regions.free() < (first.isRewrite() ? 1 : 2)) {
            return null;
        }
        boolean replaces = open == null || open.replaces();
        if (open != null) {
            closing.close(open);
            open = null;
        }
        Predecessor before = new Predecessor(regions.newestHeld(), replaces);
        Region next = regions.open();
        open = next == null ? null : new OpenRegion(regions, next, before);
        return open;
    }

    /// Only when a region broke is there no room for what is kept, unless one is about to be free.
    private boolean giveUp(Append first) {
        if (!first.isRewrite() || regions.count(Region.State.FREEING) > 0) {
            return false;
        }
        rewrites.remove().ended().ended(DiskPlace.NONE);
        return true;
    }

    private List<Append> members(OpenRegion into) {
        List<Append> members = new ArrayList<>();
        long pages = 0;
        Append next = first();
        while (next != null && members.size() < Group.MAX_ENTRIES) {
            pages += next.entry().pages();
            boolean fits = pages <= into.room(members.size() + 1);
            boolean small = members.isEmpty() || pages * Geometry.PAGE_BYTES <= limits.groupBytes();
            if (!fits || !small) {
                break;
            }
            members.add(next.isRewrite() ? rewrites.remove() : appends.remove());
            next = first();
        }
        return members;
    }

    private void ended(GroupWrite group) {
        flying.remove(group);
        heads.giveBack(group.head());
        if (group.failed() && group.into().equals(open)) {
            closing.close(group.into());
            open = null;
        }
        group.tell();
    }

    long appended() {
        return appended;
    }

    long appendedBytes() {
        return appendedBytes;
    }

    long failed() {
        return failed;
    }
}
