package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.AuditReport.RegionReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.Superblock.Found;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;

/// Looks at everything on a device that is not open as a log, the way an opening does: what an audit finds is
/// what an opening would tell, newest first.
///
/// It changes nothing, unless it is to repair: then the trailer of a region with bad blocks is written anew
/// without their entries, so that no opening tells them again. A bad object's entry becomes a tombstone: without it an
/// older copy would count again, and that one has another value. A block's key stands for its bytes, so an older
/// copy of a bad block is as good. A crash in between leaves the old trailer, the new one, or a footer whose table is
/// another; then the heads of the groups tell what is left, as [RegionEntries] does for any damaged table. A trailer
/// that is damaged is written anew as well, with what the heads tell, and so is a damaged copy of the superblock.
///
/// Memory does not depend on the device, but for at most 33 bytes an entry.
///
/// **Threads.** One, the owner of the device.
public final class LogAudit {

    /// How much is looked at.
    public enum Scope {
        /// Superblock, trailers and heads.
        TABLES,
        /// And every block.
        BLOCKS,
        /// And what is bad is dropped.
        REPAIR
    }

    /// Hears how far it has come.
    @FunctionalInterface
    public interface Progress {
        /// So many of the regions that hold something have been looked at.
        void regions(int done, int all);
    }

    private static final long WAIT_NANOS = 10_000_000;

    /// Everything is looked at, however much of it fails.
    private static final LogLimits LIMITS = new LogLimits(1, 1, 1, 1, Integer.MAX_VALUE, Long.MAX_VALUE);

    private final Io io;
    private final Scope scope;
    private final Progress progress;
    private final Found found;
    private final int damagedCopy;
    private final Regions regions;
    private final RegionEntries entries;
    private final BlockProbe probe;
    private final MemorySegment trailer;
    private final RegionReport[] reports;
    private final Map<Region, BitSet> counting = new HashMap<>();
    private final KeyPrints prints = new KeyPrints();
    private final Set<Long> badPrints = new HashSet<>();
    private final Set<Long> lives = new HashSet<>();
    private final KeyPrints tombstones = new KeyPrints();
    private final BitSet buriedNamespaces = new BitSet();
    private final List<NamespaceTally> tallies = new ArrayList<>();
    private long torn;
    private long strange;
    private long lost;
    private int missing;
    private int forgotten;
    private boolean forgets;
    private int repaired;
    private boolean copyRepaired;

    private LogAudit(BlockDevice device, Scope scope, Progress progress, Arena arena) {
        this.io = new Io(device, LIMITS);
        this.scope = scope;
        this.progress = progress;
        Found first = superblock(arena, 0);
        Found second = superblock(arena, 1);
        LogHeader header = LogHeader.of(first, second, device.size());
        this.found = Superblock.newer(first, second);
        this.damagedCopy = first.superblock() == null ? 1 : second.superblock() == null ? 2 : 0;
        Superblock superblock = found.superblock();
        if (header.refusal() != null || superblock == null) {
            String why =
                    header.refusal() == null ? "it is blank" : header.refusal().message();
            throw new IllegalArgumentException("no disk tier to look at: " + why);
        }
        this.regions = new Regions(superblock.geometry(), superblock.deviceId(), superblock.sequence());
        int regionPages = superblock.geometry().regionPages();
        this.entries = new RegionEntries(io, regions, pages(arena, RegionEntries.bytes(regionPages)));
        this.probe = new BlockProbe(io.transfers(), regions, pages(arena, BlockProbe.BYTES));
        this.trailer = pages(arena, Closing.bytes(regionPages));
        this.reports = new RegionReport[regions.count()];
        Arrays.fill(reports, new RegionReport(RegionState.FREE, 0, 0, 0));
        superblock.namespaces().forEach(_ -> tallies.add(new NamespaceTally()));
    }

    /// Looks at a device.
    ///
    /// @throws IllegalArgumentException when no log would open it
    public static AuditReport run(BlockDevice device, Scope scope, Progress progress) {
        try (Arena arena = Arena.ofShared()) {
            return new LogAudit(device, scope, progress, arena).run(arena);
        }
    }

    private static MemorySegment pages(Arena arena, long bytes) {
        return arena.allocate(bytes, Geometry.PAGE_BYTES);
    }

    private Found superblock(Arena arena, int copy) {
        MemorySegment span = pages(arena, Geometry.SUPERBLOCK_BYTES);
        Found[] read = new Found[1];
        io.transfers()
                .add(Transfer.read(
                        span,
                        (long) copy * Geometry.SUPERBLOCK_BYTES,
                        outcome -> read[0] =
                                outcome.isDone() ? Superblock.read(span) : Found.nothing(Superblock.Kind.UNREADABLE)));
        await(() -> read[0] != null);
        return Objects.requireNonNull(read[0]);
    }

    private void await(BooleanSupplier done) {
        while (!done.getAsBoolean()) {
            io.syncs().pump();
            io.transfers().run(0, WAIT_NANOS);
        }
    }

    private AuditReport run(Arena arena) {
        if (scope == Scope.REPAIR && damagedCopy > 0) {
            repairCopy(pages(arena, Geometry.SUPERBLOCK_BYTES));
        }
        PagePool pool = new PagePool(pages(arena, PagePool.PAGES * (long) Geometry.PAGE_BYTES));
        Census census = new Census(io, regions, pool);
        await(() -> {
            census.pump();
            return census.ended();
        });
        for (Region region : census.unmarked()) {
            reports[region.index()] = new RegionReport(RegionState.UNMARKED, 0, 0, 0);
        }
        List<Region> newestFirst = census.newestFirst();
        newestFirst.forEach(region -> lives.add(region.life()));
        int done = 0;
        for (Region region : newestFirst) {
            look(region);
            progress.regions(++done, newestFirst.size());
        }
        newestFirst.stream().filter(counting::containsKey).forEach(this::findOrphans);
        return report();
    }

    /// What the other copy says goes into the damaged one. Nothing depends on a damaged copy, so a crash loses nothing.
    private void repairCopy(MemorySegment span) {
        Superblock superblock = Objects.requireNonNull(found.superblock());
        superblock.write(span);
        copyRepaired = write(WriteKind.SUPERBLOCK, span, superblock.geometry().superblockOffset(damagedCopy - 1));
    }

    private void read(Region region) {
        entries.read(region);
        await(entries::ready);
    }

    private void look(Region region) {
        read(region);
        if (forgotten(region)) {
            return;
        }
        BitSet counted = new BitSet();
        BitSet bad = new BitSet();
        long bytes = 0;
        for (int i = entries.count() - 1; i >= 0; i--) {
            DiskEntry entry = entries.entry(i);
            if (!hides(entry)) {
                strange++;
                bad.set(i);
            } else if (entry.isTombstone()) {
                bury(entry);
            } else {
                bytes += (long) entry.pages() * Geometry.PAGE_BYTES;
                counted.set(i, counts(entry));
                check(region, i, counted, bad);
            }
        }
        torn += entries.torn();
        await(probe::idle);
        counted.andNot(bad);
        counting.put(region, counted);
        reports[region.index()] = new RegionReport(state(), region.life(), entries.count(), bytes);
        if (scope == Scope.REPAIR && (!bad.isEmpty() || state() == RegionState.DAMAGED)) {
            rewrite(region, bad);
        }
        missBefore();
    }

    /// Whether an opening forgets the region, see [Recovery]. Nothing of it counts, and a repair leaves it alone: a new
    /// trailer would hide what is lost.
    private boolean forgotten(Region region) {
        lost += forgets ? 0 : entries.lost();
        forgets |= entries.losesReplacing();
        if (forgets) {
            forgotten++;
            reports[region.index()] = new RegionReport(RegionState.FORGOTTEN, region.life(), entries.count(), 0);
        }
        return forgets;
    }

    /// Whether the region before is nowhere, which an opening notices in the same way.
    private void missBefore() {
        Predecessor before = entries.predecessor();
        if (before.isMissing(regions.over(), lives)) {
            missing++;
            forgets |= before.replaces();
        }
    }

    /// Whether an opening tells it, so that older copies do not count. Entries that it does not tell hide none.
    private boolean hides(DiskEntry entry) {
        return entry.fits(regions.geometry().regionPages()) && entry.namespace() < tallies.size();
    }

    private RegionState state() {
        if (entries.unclosed() && entries.lost() == 0) {
            return RegionState.OPEN;
        }
        return entries.complete() ? RegionState.CLOSED : RegionState.DAMAGED;
    }

    private void bury(DiskEntry tombstone) {
        tallies.get(tombstone.namespace()).tombstone();
        if (tombstone.isOfNamespace()) {
            buriedNamespaces.set(tombstone.namespace());
        } else {
            tombstones.add(KeyPrints.of(tombstone));
        }
    }

    /// Whether no later entry replaces this one.
    private boolean counts(DiskEntry entry) {
        long print = KeyPrints.of(entry);
        NamespaceTally tally = tallies.get(entry.namespace());
        boolean counts = !buriedNamespaces.get(entry.namespace()) && !tombstones.contains(print) && prints.add(print);
        if (counts) {
            tally.counts(entry);
        } else {
            tally.replaced();
        }
        return counts;
    }

    private void check(Region region, int index, BitSet counted, BitSet bad) {
        if (scope == Scope.TABLES) {
            return;
        }
        await(() -> !probe.full());
        DiskEntry entry = entries.entry(index);
        probe.read(region, entry, outcome -> {
            tallies.get(entry.namespace()).read(entry, counted.get(index), outcome);
            if (outcome != ReadOutcome.GOOD) {
                bad.set(index);
                badPrints.add(KeyPrints.of(entry));
            }
        });
    }

    /// Blocks before the new trailer must be durable, as before every trailer.
    private void rewrite(Region region, BitSet bad) {
        List<DiskEntry> kept = new ArrayList<>();
        for (int i = 0; i < entries.count(); i++) {
            DiskEntry entry = entries.entry(i);
            if (!bad.get(i)) {
                kept.add(entry);
            } else if (entry.isObject() && hides(entry)) {
                kept.add(entry.tombstone().at(entry.page()));
            }
        }
        int pages = Trailer.pages(kept.size());
        MemorySegment span = trailer.asSlice(0, (long) pages * Geometry.PAGE_BYTES);
        int regionPages = regions.geometry().regionPages();
        new Trailer(regions.life(region), kept, regions.over(), entries.predecessor()).write(span, regionPages);
        boolean written = write(WriteKind.TRAILER, span, regions.offset(region, regionPages - pages));
        repaired += written ? 1 : 0;
    }

    /// Syncs, writes, and syncs.
    ///
    /// @return whether it is durable
    private boolean write(WriteKind kind, MemorySegment span, long offset) {
        boolean[] ended = new boolean[1];
        boolean[] written = new boolean[1];
        io.syncs()
                .request(_ -> io.write(
                        kind,
                        span,
                        offset,
                        done -> io.syncs().request(durable -> {
                            written[0] = done && durable;
                            ended[0] = true;
                        })));
        await(() -> ended[0]);
        return written[0];
    }

    private void findOrphans(Region region) {
        BitSet counted = counting.getOrDefault(region, new BitSet());
        read(region);
        for (int i = counted.nextSetBit(0); i >= 0 && i < entries.count(); i = counted.nextSetBit(i + 1)) {
            DiskEntry entry = entries.entry(i);
            boolean root = entry.parentHi() == 0 && entry.parentLo() == 0;
            long parent = KeyPrints.ofParent(entry);
            if (!root && (!prints.contains(parent) || badPrints.contains(parent))) {
                tallies.get(entry.namespace()).orphan();
            }
        }
    }

    private AuditReport report() {
        Superblock superblock = Objects.requireNonNull(found.superblock());
        List<AuditReport.NamespaceReport> namespaces = new ArrayList<>();
        for (int i = 0; i < tallies.size(); i++) {
            namespaces.add(tallies.get(i).report(superblock.namespaces().get(i)));
        }
        return new AuditReport(
                superblock.geometry(),
                superblock.sequence(),
                damagedCopy,
                List.of(reports),
                namespaces,
                torn,
                strange,
                lost,
                missing,
                forgotten,
                repaired,
                copyRepaired);
    }
}
