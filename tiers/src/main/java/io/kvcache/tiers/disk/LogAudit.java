package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredVerifier;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;
import io.kvcache.tiers.disk.AuditReport.RegionReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.OpenRegion.TrailerWriter;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import io.kvcache.tiers.disk.Superblock.SuperblockCopy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/// Looks at everything on a device that is not open as a log, the way an opening does: what an audit finds is
/// what an opening would tell, newest first.
///
/// It changes nothing, unless it is to repair: then the trailer of a region with bad blocks is written anew
/// without their entries, so that no opening tells them again. A bad object's entry becomes a tombstone: without it
/// an older copy would count again, and that one has another value. A block's key stands for its bytes, so an older
/// copy of a bad block is as good. A crash in between leaves the old trailer, the new one, or a footer whose table
/// is another; then the heads of the batches tell what is left, as [RegionEntryReader] does for any damaged table. A
/// trailer that is damaged is written anew as well, with what the heads tell, and so is a damaged copy of the
/// superblock.
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
    public interface ProgressListener {
        /// Reports how many of the regions that hold something have been checked.
        void onProgress(int done, int all);
    }

    private static final long WAIT_NANOS = 10_000_000;

    /// Everything is looked at, however much of it fails.
    private static final LogLimits LIMITS = new LogLimits(1, 1, 1, 1, Integer.MAX_VALUE, Long.MAX_VALUE);

    private final LogIo io;
    private final Scope scope;
    private final ProgressListener progressListener;
    private final SuperblockCopy superblockCopy;
    private final int damagedCopy;
    private final Membership membership;
    private final RegionTable regionTable;
    private final RegionEntryReader entries;
    private final BlockVerifier probe;
    private final MemorySegment trailer;
    private final RegionReport[] reports;
    private final Map<Region, BitSet> currentEntries = new HashMap<>();
    private final FingerprintSet fingerprints = new FingerprintSet();
    private final Set<Long> badFingerprints = new HashSet<>();
    private final Set<Long> epochs = new HashSet<>();
    private final FingerprintSet tombstones = new FingerprintSet();
    private final BitSet tombstonedNamespaces = new BitSet();
    private final List<NamespaceAuditCounts> tallies = new ArrayList<>();
    private long torn;
    private long invalid;
    private long lost;
    private int missing;
    private int discardedRegions;
    private boolean discarding;
    private int repairedRegions;
    private boolean copyRepaired;

    private LogAudit(BlockDevice device, Scope scope, ProgressListener progressListener, Arena arena) {
        this.io = new LogIo(device, LIMITS);
        this.scope = scope;
        this.progressListener = progressListener;
        SuperblockCopy first = superblock(arena, 0);
        SuperblockCopy second = superblock(arena, 1);
        LogHeader header = LogHeader.of(first, second, device.size());
        this.superblockCopy = Superblock.selectNewer(first, second);
        this.damagedCopy = first.superblock() == null ? 1 : second.superblock() == null ? 2 : 0;
        Superblock superblock = superblockCopy.superblock();
        if (header.formatError() != null || superblock == null) {
            String why = header.formatError() == null
                    ? "it is blank"
                    : header.formatError().message();
            throw new IllegalArgumentException("no disk tier to look at: " + why);
        }
        this.membership = superblock.membership();
        this.regionTable = new RegionTable(superblock.geometry(), superblock.deviceId(), superblock.sequence());
        int regionPages = superblock.geometry().regionPages();
        this.entries = new RegionEntryReader(io, regionTable, pages(arena, RegionEntryReader.bytes(regionPages)));
        this.probe = new BlockVerifier(io, regionTable, pages(arena, BlockVerifier.BYTES));
        this.trailer = pages(arena, TrailerWriter.bytes(regionPages));
        this.reports = new RegionReport[regionTable.count()];
        Arrays.fill(reports, new RegionReport(RegionState.FREE, 0, 0, 0));
        superblock.namespaces().forEach(_ -> tallies.add(new NamespaceAuditCounts()));
    }

    /// Looks at a device.
    ///
    /// @throws IllegalArgumentException when no log would open it
    public static AuditReport run(BlockDevice device, Scope scope, ProgressListener progressListener) {
        try (Arena arena = Arena.ofShared()) {
            return new LogAudit(device, scope, progressListener, arena).run(arena);
        }
    }

    private static MemorySegment pages(Arena arena, long bytes) {
        return arena.allocate(bytes, DiskGeometry.PAGE_BYTES);
    }

    private SuperblockCopy superblock(Arena arena, int copy) {
        MemorySegment span = pages(arena, DiskGeometry.SUPERBLOCK_BYTES);
        SuperblockCopy[] read = new SuperblockCopy[1];
        io.read(
                span,
                (long) copy * DiskGeometry.SUPERBLOCK_BYTES,
                outcome -> read[0] =
                        outcome.isDone() ? Superblock.read(span) : SuperblockCopy.invalid(Superblock.Kind.UNREADABLE));
        await(() -> read[0] != null);
        return Objects.requireNonNull(read[0]);
    }

    private void await(BooleanSupplier done) {
        while (!done.getAsBoolean()) {
            io.startSync();
            io.poll(0, WAIT_NANOS);
        }
    }

    private AuditReport run(Arena arena) {
        if (scope == Scope.REPAIR && damagedCopy > 0) {
            repairCopy(pages(arena, DiskGeometry.SUPERBLOCK_BYTES));
        }
        PagePool pool = new PagePool(pages(arena, PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES));
        RegionScan regionScan = new RegionScan(io, regionTable, pool);
        await(() -> {
            regionScan.pump();
            return regionScan.isComplete();
        });
        for (Region region : regionScan.unmarked()) {
            reports[region.index()] = new RegionReport(RegionState.UNMARKED, 0, 0, 0);
        }
        List<Region> newestFirst = regionScan.newestFirst();
        newestFirst.forEach(region -> epochs.add(region.epoch()));
        int done = 0;
        for (Region region : newestFirst) {
            auditRegion(region);
            progressListener.onProgress(++done, newestFirst.size());
        }
        newestFirst.stream().filter(currentEntries::containsKey).forEach(this::findOrphans);
        return report();
    }

    /// Copies the intact superblock over the damaged one. Nothing depends on a damaged copy, so a crash loses
    /// nothing.
    private void repairCopy(MemorySegment span) {
        Superblock superblock = Objects.requireNonNull(superblockCopy.superblock());
        superblock.write(span);
        copyRepaired =
                writeDurably(WriteKind.SUPERBLOCK, span, superblock.geometry().superblockOffset(damagedCopy - 1));
    }

    private void read(Region region) {
        entries.read(region);
        await(entries::isReady);
    }

    private void auditRegion(Region region) {
        read(region);
        if (isDiscarded(region)) {
            return;
        }
        BitSet counted = new BitSet();
        BitSet bad = new BitSet();
        long bytes = 0;
        for (int i = entries.count() - 1; i >= 0; i--) {
            DiskEntry entry = entries.entry(i);
            if (!hidesOlder(entry)) {
                invalid++;
                bad.set(i);
            } else if (entry.isTombstone()) {
                addTombstone(entry);
            } else {
                bytes += (long) entry.pages() * DiskGeometry.PAGE_BYTES;
                counted.set(i, isCurrent(entry, RegionTable.opening(region)));
                check(region, i, counted, bad);
            }
        }
        torn += entries.tornEntries();
        await(probe::isIdle);
        counted.andNot(bad);
        currentEntries.put(region, counted);
        reports[region.index()] = new RegionReport(regionState(), region.epoch(), entries.count(), bytes);
        if (scope == Scope.REPAIR && (!bad.isEmpty() || regionState() == RegionState.DAMAGED)) {
            rewriteTrailer(region, bad);
        }
        checkPredecessor();
    }

    /// Returns whether an opening forgets the region, see [LogRecovery]. None of its entries count, and a repair
    /// leaves it alone: a new trailer would hide the loss.
    private boolean isDiscarded(Region region) {
        lost += discarding ? 0 : entries.lostEntries();
        discarding |= entries.losesReplacingEntries();
        if (discarding) {
            discardedRegions++;
            reports[region.index()] = new RegionReport(RegionState.FORGOTTEN, region.epoch(), entries.count(), 0);
        }
        return discarding;
    }

    /// Checks whether the region before is missing, which an opening notices in the same way.
    private void checkPredecessor() {
        RegionPredecessor before = entries.predecessor();
        if (before.isMissing(regionTable.endedEpoch(), epochs)) {
            missing++;
            discarding |= before.replaces();
        }
    }

    /// Returns whether an opening reports the entry, so that older copies do not count. Entries that it does not
    /// report hide none.
    private boolean hidesOlder(DiskEntry entry) {
        return entry.fitsIn(regionTable.geometry().regionPages()) && entry.namespace() < tallies.size();
    }

    private RegionState regionState() {
        if (entries.isUnclosed() && entries.lostEntries() == 0) {
            return RegionState.OPEN;
        }
        return entries.isComplete() ? RegionState.CLOSED : RegionState.DAMAGED;
    }

    private void addTombstone(DiskEntry tombstone) {
        tallies.get(tombstone.namespace()).addTombstone();
        if (tombstone.isNamespaceTombstone()) {
            tombstonedNamespaces.set(tombstone.namespace());
        } else {
            tombstones.add(FingerprintSet.of(tombstone));
        }
    }

    /// Returns whether no later entry replaces this one, and the disk has not given it up.
    private boolean isCurrent(DiskEntry entry, long opening) {
        long print = FingerprintSet.of(entry);
        NamespaceAuditCounts tally = tallies.get(entry.namespace());
        boolean counts = membership.counts(entry, opening)
                && !tombstonedNamespaces.get(entry.namespace())
                && !tombstones.contains(print)
                && fingerprints.add(print);
        if (counts) {
            tally.addCurrent(entry);
        } else {
            tally.addReplaced();
        }
        return counts;
    }

    private void check(Region region, int index, BitSet counted, BitSet bad) {
        if (scope == Scope.TABLES) {
            return;
        }
        await(() -> !probe.isFull());
        DiskEntry entry = entries.entry(index);
        probe.read(region, entry, outcome -> {
            tallies.get(entry.namespace()).addReadOutcome(entry, counted.get(index), outcome);
            if (outcome != TierRead.Outcome.SUCCESS) {
                bad.set(index);
                badFingerprints.add(FingerprintSet.of(entry));
            }
        });
    }

    /// Blocks before the new trailer must be durable, as before every trailer.
    private void rewriteTrailer(Region region, BitSet bad) {
        List<DiskEntry> kept = new ArrayList<>();
        for (int i = 0; i < entries.count(); i++) {
            DiskEntry entry = entries.entry(i);
            if (!bad.get(i)) {
                kept.add(entry);
            } else if (entry.isObject() && hidesOlder(entry)) {
                kept.add(entry.tombstone().withPage(entry.page()));
            }
        }
        int pages = RegionTrailer.pages(kept.size());
        MemorySegment span = trailer.asSlice(0, (long) pages * DiskGeometry.PAGE_BYTES);
        int regionPages = regionTable.geometry().regionPages();
        new RegionTrailer(regionTable.epoch(region), kept, regionTable.endedEpoch(), entries.predecessor())
                .write(span, regionPages);
        boolean written = writeDurably(WriteKind.TRAILER, span, regionTable.offset(region, regionPages - pages));
        repairedRegions += written ? 1 : 0;
    }

    /// Syncs, writes, and syncs.
    ///
    /// @return whether it is durable
    private boolean writeDurably(WriteKind kind, MemorySegment span, long offset) {
        boolean[] ended = new boolean[1];
        boolean[] written = new boolean[1];
        io.sync(_ -> io.write(
                kind,
                span,
                offset,
                done -> io.sync(durable -> {
                    written[0] = done && durable;
                    ended[0] = true;
                })));
        await(() -> ended[0]);
        return written[0];
    }

    private void findOrphans(Region region) {
        BitSet counted = currentEntries.getOrDefault(region, new BitSet());
        read(region);
        for (int i = counted.nextSetBit(0); i >= 0 && i < entries.count(); i = counted.nextSetBit(i + 1)) {
            DiskEntry entry = entries.entry(i);
            boolean root = entry.parentHi() == 0 && entry.parentLo() == 0;
            long parent = FingerprintSet.ofParent(entry);
            if (!root && (!fingerprints.contains(parent) || badFingerprints.contains(parent))) {
                tallies.get(entry.namespace()).addOrphan();
            }
        }
    }

    private AuditReport report() {
        Superblock superblock = Objects.requireNonNull(superblockCopy.superblock());
        List<AuditReport.NamespaceReport> namespaces = new ArrayList<>();
        for (int i = 0; i < tallies.size(); i++) {
            namespaces.add(tallies.get(i).report(superblock.namespaces().get(i)));
        }
        return new AuditReport(
                superblock.geometry(),
                superblock.sequence(),
                membership.generation().number(),
                membership.generation().members().size(),
                damagedCopy,
                List.of(reports),
                namespaces,
                torn,
                invalid,
                lost,
                missing,
                discardedRegions,
                repairedRegions,
                copyRepaired);
    }

    /// Counts what an audit finds of one namespace.
    private static final class NamespaceAuditCounts {

        private long blocks;
        private long objects;
        private long bytes;
        private long storedBytes;
        private long replaced;
        private long orphans;
        private long tombstones;
        private long badChecksums;
        private long unreadable;

        void addCurrent(DiskEntry entry) {
            count(entry, 1);
        }

        private void count(DiskEntry entry, int by) {
            if (entry.isObject()) {
                objects += by;
            } else {
                blocks += by;
            }
            bytes += (long) by * entry.bytes();
            storedBytes += (long) by * entry.pages() * DiskGeometry.PAGE_BYTES;
        }

        void addReplaced() {
            replaced++;
        }

        void addOrphan() {
            orphans++;
        }

        void addTombstone() {
            tombstones++;
        }

        /// Reading one had this outcome.
        ///
        /// @param counted whether it was counted as one that counts
        void addReadOutcome(DiskEntry entry, boolean counted, TierRead.Outcome outcome) {
            switch (outcome) {
                case SUCCESS -> {}
                case UNREADABLE -> unreadable++;
                case CORRUPT -> badChecksums++;
            }
            if (outcome != TierRead.Outcome.SUCCESS && counted) {
                count(entry, -1);
            }
        }

        NamespaceReport report(Namespace namespace) {
            return new NamespaceReport(
                    namespace,
                    blocks,
                    objects,
                    bytes,
                    storedBytes,
                    orphans,
                    replaced,
                    tombstones,
                    badChecksums,
                    unreadable);
        }
    }

    /// Reads blocks to find out whether they are what their entries say, some at a time, in pieces, so that memory
    /// does not depend on how large they are.
    private static final class BlockVerifier {

        /// Read at a time: a disk is as fast with pieces of this size as with larger ones.
        private static final int PIECE_BYTES = 256 << 10;

        /// Enough pieces on their way for a disk to be busy.
        private static final int MAX_READS = 16;

        static final long BYTES = (long) MAX_READS * PIECE_BYTES;

        private final LogIo io;
        private final RegionTable regionTable;
        private final Deque<ReadBuffer> idle = new ArrayDeque<>();

        /// @param memory [#BYTES] of it
        BlockVerifier(LogIo io, RegionTable regionTable, MemorySegment memory) {
            this.io = io;
            this.regionTable = regionTable;
            for (int i = 0; i < MAX_READS; i++) {
                idle.add(new ReadBuffer(memory.asSlice((long) i * PIECE_BYTES, PIECE_BYTES)));
            }
        }

        /// Returns whether no more can be read before one has ended.
        boolean isFull() {
            return idle.isEmpty();
        }

        boolean isIdle() {
            return idle.size() == MAX_READS;
        }

        /// Begins to read a block; not when [#isFull].
        void read(Region region, DiskEntry entry, Consumer<TierRead.Outcome> then) {
            idle.remove().begin(region, entry, then);
        }

        private final class ReadBuffer {
            private final MemorySegment buffer;
            private final StoredVerifier verifier = new StoredVerifier();
            private long at;
            private long left;
            private Consumer<TierRead.Outcome> callback = _ -> {};

            ReadBuffer(MemorySegment buffer) {
                this.buffer = buffer;
            }

            void begin(Region region, DiskEntry next, Consumer<TierRead.Outcome> follow) {
                verifier.begin(next.layout(), next.bytes(), next.checksum());
                callback = follow;
                at = regionTable.offset(region, next.page());
                left = (long) next.pages() * DiskGeometry.PAGE_BYTES;
                read();
            }

            private void read() {
                MemorySegment piece = buffer.asSlice(0, Math.min(left, PIECE_BYTES));
                io.read(piece, at, outcome -> onRead(piece, outcome));
            }

            private void onRead(MemorySegment piece, IoOutcome outcome) {
                at += piece.byteSize();
                left -= piece.byteSize();
                if (!outcome.isDone()) {
                    finish(TierRead.Outcome.UNREADABLE);
                    return;
                }
                verifier.add(piece);
                if (left > 0) {
                    read();
                } else {
                    finish(verifier.isGood() ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT);
                }
            }

            private void finish(TierRead.Outcome outcome) {
                idle.add(this);
                callback.accept(outcome);
            }
        }
    }

    /// A set of entries, each known by 64 bits of its key, namespace and part: of 16 million, the chance that any
    /// two are taken for one is one in 130,000. It serves counts and nothing else.
    static final class FingerprintSet {

        private static final int INITIAL_SLOTS = 1 << 12;

        /// Slots to be searched stay few while at most half are taken.
        private static final int SLOTS_PER_FINGERPRINT = 2;

        private long[] slots = new long[INITIAL_SLOTS];
        private int size;

        /// Returns the fingerprint of an entry; never 0.
        static long of(DiskEntry entry) {
            return fingerprint(entry.keyHi(), entry.keyLo(), entry.identity());
        }

        /// Returns the fingerprint of an entry's parent.
        static long ofParent(DiskEntry entry) {
            return fingerprint(entry.parentHi(), entry.parentLo(), entry.identity());
        }

        /// Halves of SplittableRandom's mixing, after which every bit depends on every other.
        private static long fingerprint(long hi, long lo, int identity) {
            long mixed = hi + Long.rotateLeft(lo, 31) * 0x9E37_79B9_7F4A_7C15L + (identity >>> DiskEntry.FLAG_BITS);
            mixed = (mixed ^ mixed >>> 30) * 0xBF58_476D_1CE4_E5B9L;
            mixed = (mixed ^ mixed >>> 27) * 0x94D0_49BB_1331_11EBL;
            mixed ^= mixed >>> 31;
            return mixed == 0 ? 1 : mixed;
        }

        /// Adds a print.
        ///
        /// @return whether it is new
        boolean add(long fingerprint) {
            int slot = find(fingerprint);
            if (slots[slot] == fingerprint) {
                return false;
            }
            slots[slot] = fingerprint;
            size++;
            if (size * SLOTS_PER_FINGERPRINT > slots.length) {
                grow();
            }
            return true;
        }

        boolean contains(long fingerprint) {
            return slots[find(fingerprint)] == fingerprint;
        }

        /// Returns the slot of a fingerprint, or the free one where it would go.
        private int find(long fingerprint) {
            int slot = (int) fingerprint & slots.length - 1;
            while (slots[slot] != 0 && slots[slot] != fingerprint) {
                slot = slot + 1 & slots.length - 1;
            }
            return slot;
        }

        private void grow() {
            long[] old = slots;
            slots = new long[old.length * SLOTS_PER_FINGERPRINT];
            for (long fingerprint : old) {
                if (fingerprint != 0) {
                    slots[find(fingerprint)] = fingerprint;
                }
            }
        }
    }
}
