package io.kvcache.tiers.disk;

import io.kvcache.core.codec.ChunkCoder;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.Tier.RangeTier;
import io.kvcache.core.tier.Tier.RangeTier.TierRange;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import io.kvcache.tiers.disk.LogHeader.FormatError;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.LogMount.SuperblockWriter;
import io.kvcache.tiers.disk.OpenRegion.TrailerWriter;
import io.kvcache.tiers.disk.RegionReclaimer.RegionEraser;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Blocks and objects on one device: written one after another into regions, read by address, reclaimed a region
/// at a time, found again after a crash.
///
/// The log does nothing between ticks. A tick hands queued operations to the device, follows up those that have
/// ended, and does a bounded amount of work. So a simulation drives it step by step, and a thread is put around it
/// last. It keeps no index: the store, its [TierListener], knows where each block lies. The store and the log
/// number namespaces each on its own. A namespace that the log does not know yet is registered with its first
/// block, which waits until that is done.
///
/// **Opening.** A log begins in state OPENING and gets to SERVING by ticks: it reads the superblock, formats a
/// blank device, and reads one or two pages of each region. Then it appends and reads, and reports to the store
/// the entries it finds, region by region. Reclaiming begins when all are reported. A device with other contents
/// is left alone, or formatted if the configuration says so.
///
/// **Promises.**
/// - A read that is good has the block's bytes: its checksum is verified, and an address in a reclaimed region is
///   never read.
/// - A block appended before a [#flush] that was answered with true is found by every later opening, with its
///   bytes, until its region is reclaimed without keeping it. That holds as long as the device keeps all it has
///   reported as synced.
/// - A block that was not flushed may be found or not; if so, with its bytes.
/// - An entry that reclaiming dropped may come back after a crash, with its bytes, until the region is durably
///   marked free.
/// - An entry that was appended again or deleted by a [#tombstone] before a flush that was answered with true does
///   not come back, not even when the later entry or the tombstone is reclaimed.
/// - What was appended before the device was away from the other disks of its store counts as [DiskSet] says.
///
/// **Failures.** A single one becomes a miss, or a block that is not written, and is counted. No space, a failed
/// sync, or a trailer that cannot be written end the writing ([TierState#READ_ONLY]): after a failed sync the log
/// could not keep its promises. Too many failures in a row, or one operation that hangs, end everything
/// ([TierState#FAILED]). A log comes back by being opened again.
///
/// **Ownership.** The log closes its [Resources] with itself. Memory of a write or a read is the log's from
/// ACCEPTED until its outcome is reported.
///
/// **Threads.** One, the owner of the device; state, cause and statistics may be read by any.
public final class DiskLog implements Tier, RangeTier {

    private static final Logger LOG = System.getLogger(DiskLog.class.getName());

    /// Longest age of the published statistics while there is anything to do.
    private static final long STATS_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// Longest wait of closing for operations in flight; the device has a limit of its own after that.
    private static final long CLOSE_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final String name;
    private final BlockDevice device;
    private final Resources resources;
    private final List<HostMemory> logMemory = new ArrayList<>();
    private final LogIo io;
    private final LogMount logMount;
    private final TierListener listener;
    private final DiskLogConfig config;
    private @Nullable MountedLog mountedLog;
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats stats;
    private volatile boolean statsWanted;
    private boolean changed;
    private long statsNanos;
    private long now;

    /// Starts to open a device without another user.
    ///
    /// @param name of the tier, for the log
    /// @param resources are the log's from here on
    /// @throws IllegalArgumentException when the configuration is for a device of another size
    public DiskLog(String name, Resources resources, DiskLogConfig config, TierListener listener) {
        this.name = name;
        this.device = resources.device;
        if (config.geometry().deviceBytes() != device.size()) {
            throw new IllegalArgumentException("a geometry for %s bytes and a device of %s"
                    .formatted(config.geometry().deviceBytes(), device.size()));
        }
        this.resources = resources;
        this.io = new LogIo(device, config.limits());
        this.config = config;
        this.listener = listener;
        this.stats = TierStats.empty(device.describe(), device.size());
        this.logMount = new LogMount(
                io, config, reserve(2L * DiskGeometry.SUPERBLOCK_BYTES), resources.member, this::onMounted);
    }

    /// Device, memory and threads of a log, which it closes with itself.
    ///
    /// @param owner closes the device: the device itself, or the directory that it is a file of
    /// @param memory source of the log's own memory, besides the blocks. The log's thread asks it twice, at
    ///     opening, while no operation is in flight. So it may register that memory with the device
    /// @param computeExecutor checks, codes and decodes large blocks beside the log's thread, until the log is
    ///     closed; null when the log's thread does that too
    /// @param member the device among the disks of its store, the same at each opening
    public record Resources(
            BlockDevice device,
            AutoCloseable owner,
            HostMemorySource memory,
            @Nullable Executor computeExecutor,
            SetMember member) {

        /// Resources of a log whose own thread computes all, on the only disk of its store.
        public Resources(BlockDevice device, AutoCloseable owner, HostMemorySource memory) {
            this(device, owner, memory, null);
        }

        /// Resources of a log on the only disk of its store.
        public Resources(
                BlockDevice device, AutoCloseable owner, HostMemorySource memory, @Nullable Executor computeExecutor) {
            this(device, owner, memory, computeExecutor, new DiskSet().add("a disk"));
        }
    }

    private MemorySegment reserve(long bytes) {
        HostMemory memory = resources.memory.reserve("disk-log", bytes);
        logMemory.add(memory);
        return memory.segment();
    }

    private void onMounted(SuperblockWriter superblockWriter) {
        mountedLog = new MountedLog(superblockWriter);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        now = nowNanos;
        int done = work(nowNanos, waitNanos);
        changed |= done > 0;
        publishState();
        return done;
    }

    private int work(long nowNanos, long waitNanos) {
        int done = io.poll(nowNanos, waitNanos);
        if (mountedLog != null) {
            done += mountedLog.pump();
        }
        io.startSync();
        io.start();
        return done;
    }

    private void publishState() {
        cause = io.cause();
        state = io.state();
        if (state == TierState.FAILED) {
            resources.member.leave();
        } else if (state == TierState.READ_ONLY) {
            resources.member.onReadOnly();
        }
        boolean due = changed && now - statsNanos >= STATS_INTERVAL_NANOS;
        if ((statsWanted || due) && hasStats()) {
            statsWanted = false;
            changed = false;
            statsNanos = now;
            stats = logStats().toTierStats(device.describe(), device.size());
        }
    }

    @Override
    public TierState state() {
        return state;
    }

    @Override
    public String cause() {
        return cause;
    }

    @Override
    public void wake() {
        device.wake();
    }

    /// Returns why the device was left alone, or null.
    public @Nullable FormatError formatError() {
        return logMount.formatError();
    }

    @Override
    public boolean isRecovering() {
        return mountedLog == null || mountedLog.isRecovering();
    }

    @Override
    public boolean isIdle() {
        return io.isIdle() && (mountedLog == null || mountedLog.isIdle());
    }

    /// {@inheritDoc}
    ///
    /// @throws IllegalStateException before it serves
    @Override
    public long maxBlockBytes() {
        return requireServing().geometry().maxEntryBytes();
    }

    /// Returns the namespaces by number.
    public List<Namespace> namespaces() {
        return mountedLog == null ? List.of() : mountedLog.namespaces.all();
    }

    /// Returns the number of a namespace, as entries have it, or -1 when it is not registered yet.
    int namespaceId(Namespace namespace) {
        return namespaces().indexOf(namespace);
    }

    /// As [NamespaceTable#register(Namespace)].
    SubmitResult register(Namespace namespace) {
        return mountedLog == null ? SubmitResult.REJECTED : mountedLog.namespaces.register(namespace);
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        if (mountedLog == null) {
            return SubmitResult.REJECTED;
        }
        NamespaceTable namespaces = mountedLog.namespaces;
        int number = namespaces.toLogId(block.namespaceId());
        return number < 0 ? namespaces.register(block.namespaceId()) : append(DiskEntry.of(block, number), pages, tag);
    }

    /// {@inheritDoc}
    ///
    /// Nothing changes until the next opening: a deleted block can be read until its region is reclaimed, and the
    /// store does not keep it then. A tombstone takes a row of its region's table and no room for bytes, and lasts
    /// until its region is reclaimed. [#flush] makes it durable.
    @Override
    public SubmitResult tombstone(Tombstone tombstone, long tag) {
        if (mountedLog == null) {
            return SubmitResult.REJECTED;
        }
        NamespaceTable namespaces = mountedLog.namespaces;
        int number = namespaces.toLogId(tombstone.namespaceId());
        if (number < 0) {
            return namespaces.register(tombstone.namespaceId());
        }
        DiskEntry entry = tombstone.isNamespace()
                ? DiskEntry.tombstone(number)
                : DiskEntry.tombstone(tombstone.keyHi(), tombstone.keyLo(), number);
        return appendTombstone(entry, tag);
    }

    /// Appends a block or object.
    ///
    /// @param entry its page is ignored
    /// @param pieces native memory at aligned addresses, in whole pages, together as many as the bytes take. They
    ///     are written as they are, with the padding after the last byte
    /// @throws IllegalArgumentException when the pieces do not fit the entry, it is too large, or its
    ///     namespace is not registered
    SubmitResult append(DiskEntry entry, List<MemorySegment> pieces, long tag) {
        return append(entry, false, pieces, tag);
    }

    /// Appends a tombstone of the entries that it replaces ([DiskEntry#replaces]).
    ///
    /// @throws IllegalArgumentException when it is not a tombstone, or its namespace is not registered
    SubmitResult appendTombstone(DiskEntry tombstone, long tag) {
        return append(tombstone, true, List.of(), tag);
    }

    private SubmitResult append(DiskEntry entry, boolean tombstone, List<MemorySegment> pieces, long tag) {
        if (!io.canWrite()) {
            return SubmitResult.REJECTED;
        }
        MountedLog log = requireServing();
        BufferList checked = new BufferList(pieces, entry.bytes());
        if (entry.isTombstone() != tombstone || !entry.isValid()) {
            throw new IllegalArgumentException(
                    entry + ": blocks and objects of at least 1 byte are appended, tombstones of 0 are buried");
        }
        if (entry.bytes() > maxBlockBytes() || entry.namespace() >= log.namespaces.size()) {
            throw new IllegalArgumentException("%s: at most %s bytes and a namespace below %s are taken"
                    .formatted(entry, maxBlockBytes(), log.namespaces.size()));
        }
        boolean recorded = resources.member.canWrite()
                && (!tombstone || log.isOfObjects(entry) || resources.member.recordBlockDrop());
        if (!recorded || log.writer.isFull()) {
            return SubmitResult.RETRY;
        }
        boolean coded = log.isCoded(entry);
        long stagingBytes = tombstone ? 0 : log.encoder.stagingBytes(entry, coded);
        if (stagingBytes > 0) {
            return log.encoder.append(entry, checked, stagingBytes, coded, address -> listener.onWritten(tag, address))
                    ? SubmitResult.ACCEPTED
                    : SubmitResult.RETRY;
        }
        log.writer.append(entry, checked, address -> listener.onWritten(tag, address));
        return SubmitResult.ACCEPTED;
    }

    /// {@inheritDoc}
    ///
    /// @throws IllegalArgumentException when the pages do not fit the bytes, or no such address was ever
    ///     handed out
    @Override
    public SubmitResult read(TierRead read) {
        return mountedLog == null
                ? SubmitResult.REJECTED
                : mountedLog.reads.read(
                        read.address(), new BufferList(read.pages(), read.bytes()), read.checksum(), read.tag());
    }

    @Override
    public SubmitResult readRange(TierRange range) {
        return mountedLog == null ? SubmitResult.REJECTED : mountedLog.reads.readRange(range);
    }

    /// Makes durable all entries appended by now. Every later opening finds those whose address was or will be
    /// reported, until their region is reclaimed.
    ///
    /// It waits until those blocks and the heads of their batches are written. Where a batch before one of them
    /// failed, it also waits for the trailer that alone leads to it. Then it syncs. False makes no promise at all,
    /// and the log is no longer serving.
    ///
    /// @return RETRY while a disk of the store comes or goes, see [DiskSet]; else ACCEPTED or REJECTED
    @Override
    public SubmitResult flush(long tag) {
        if (!io.canWrite()) {
            return SubmitResult.REJECTED;
        }
        if (!resources.member.canWrite()) {
            return SubmitResult.RETRY;
        }
        requireServing().writer.flushAppended(durable -> listener.onFlushed(tag, durable));
        return SubmitResult.ACCEPTED;
    }

    @Override
    public void stop() {
        io.markStopped();
        statsWanted = true;
        publishState();
    }

    /// Waits a bounded time for operations in flight, and closes the device.
    ///
    /// @throws IllegalStateException when the device does not end its operations: it stays open then
    @Override
    public void close() {
        stop();
        long millisecond = TimeUnit.MILLISECONDS.toNanos(1);
        for (long waited = 0; !isIdle() && waited < CLOSE_TIMEOUT_NANOS; waited += millisecond) {
            work(now, millisecond);
        }
        try {
            resources.owner.close();
        } catch (RuntimeException stuck) {
            throw stuck; // the device still uses its memory
        } catch (Exception failed) {
            LOG.log(Level.WARNING, name + " did not close", failed);
        }
        logMemory.forEach(HostMemory::close);
        logMemory.clear();
    }

    @Override
    public void closeAfterFailure() {
        resources.member.leave();
        close();
    }

    @Override
    public TierStats stats() {
        statsWanted = true;
        return stats;
    }

    /// Returns detailed counters since the opening. The log's thread.
    ///
    /// @throws IllegalStateException before it serves
    public DiskLogStats logStats() {
        MountedLog log = requireServing();
        Map<WriteKind, Long> written = new EnumMap<>(WriteKind.class);
        for (WriteKind kind : WriteKind.values()) {
            written.put(kind, io.written(kind));
        }
        return new DiskLogStats(
                log.writer.appended(),
                log.writer.appendedBytes(),
                log.writer.failedAppends(),
                written,
                io.failures(),
                log.reads.stats(),
                log.codingCounters.stats(),
                log.regionReclaimer.stats(),
                log.recovered(),
                log.regionCounts());
    }

    /// Returns whether there are statistics.
    boolean hasStats() {
        return mountedLog != null;
    }

    /// Returns the number of regions of the device.
    int regions() {
        return requireServing().geometry().regions();
    }

    /// Returns the number of the life that the region of an address is in.
    long epoch(long address) {
        return requireServing().epoch(address);
    }

    /// Checks the invariants.
    ///
    /// @throws IllegalStateException that names the violated invariant
    void validate() {
        if (mountedLog != null) {
            mountedLog.validate();
        }
    }

    private MountedLog requireServing() {
        if (mountedLog == null) {
            throw new IllegalStateException("the log is " + state() + ", it has not served yet");
        }
        return mountedLog;
    }

    /// Parts of a log whose device has been mounted, and the order in which they work.
    private final class MountedLog {

        private final SuperblockWriter superblockWriter;
        private final RegionTable regionTable;
        private final NamespaceTable namespaces;
        private final RegionScan regionScan;
        private final TrailerWriter trailerWriter;
        private final RegionEraser regionEraser;
        private final BatchWriter writer;
        private final ComputePool computePool;
        private final BlockEncoder.CodingCounters codingCounters = new BlockEncoder.CodingCounters();
        private final BlockEncoder encoder;
        private final VerifyingReader reads;
        private final RegionReclaimer regionReclaimer;
        private final List<RegionEntryReader> entryReaders;
        private @Nullable LogRecovery recovery;

        MountedLog(SuperblockWriter superblockWriter) {
            this.superblockWriter = superblockWriter;
            Superblock superblock = superblockWriter.current();
            int regionPages = superblock.geometry().regionPages();
            MemorySlicer slicer = new MemorySlicer(reserve(bytes(regionPages, config)));
            regionTable = new RegionTable(superblock.geometry(), superblock.deviceId(), superblock.sequence());
            namespaces = new NamespaceTable(superblockWriter, io, listener);
            PagePool pages = new PagePool(slicer.allocate(PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES));
            regionScan = new RegionScan(io, regionTable, pages);
            trailerWriter = new TrailerWriter(io, regionTable, slicer.allocate(TrailerWriter.bytes(regionPages)));
            regionEraser =
                    new RegionEraser(io, regionTable, pages, config.reclaim().discard());
            writer = new BatchWriter(io, regionTable, pages, trailerWriter, config.limits(), this::onAppendBegun);
            computePool = new ComputePool(resources.computeExecutor, device::wake);
            StagingRing ring = new StagingRing(slicer.allocate(config.stagingBytes()));
            encoder = new BlockEncoder(
                    ring,
                    writer,
                    computePool,
                    codingCounters,
                    superblock.geometry().maxEntryBytes());
            reads = new VerifyingReader(
                    io, regionTable, listener, config.limits().reads(), computePool, codingCounters, ring);
            entryReaders = new ArrayList<>();
            for (int i = 0; i < LogRecovery.MAX_READERS; i++) {
                entryReaders.add(
                        new RegionEntryReader(io, regionTable, slicer.allocate(RegionEntryReader.bytes(regionPages))));
            }
            regionReclaimer = new RegionReclaimer(
                    io,
                    regionTable,
                    entryReaders.getFirst(),
                    writer,
                    regionEraser,
                    listener,
                    namespaces,
                    slicer.allocate(config.reclaim().rewriteBytes()),
                    config.reclaim());
        }

        private static long bytes(int regionPages, DiskLogConfig config) {
            return PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES
                    + TrailerWriter.bytes(regionPages)
                    + LogRecovery.MAX_READERS * RegionEntryReader.bytes(regionPages)
                    + config.reclaim().rewriteBytes()
                    + config.stagingBytes();
        }

        /// Cuts memory into spans, one after another.
        private static final class MemorySlicer {
            private final MemorySegment memory;
            private long at;

            MemorySlicer(MemorySegment memory) {
                this.memory = memory;
            }

            MemorySegment allocate(long bytes) {
                MemorySegment span = memory.asSlice(at, bytes);
                at += bytes;
                return span;
            }
        }

        /// Lets every part do its work.
        ///
        /// @return the amount of work done, 0 for none
        int pump() {
            int done = computePool.pump(io.isDeviceIdle());
            pumpMembership();
            LogRecovery telling = recovery;
            if (telling == null) {
                regionScan.pump();
                if (!regionScan.isComplete() || io.isWritingHalted()) {
                    return done;
                }
                io.markServing();
                Membership membership = resources.member.wanted();
                if (membership == null) {
                    return done;
                }
                telling = new LogRecovery(
                        name,
                        regionTable,
                        listener,
                        trailerWriter,
                        regionEraser,
                        namespaces,
                        membership,
                        regionScan.newestFirst(),
                        entryReaders);
                recovery = telling;
                regionScan.unmarked().forEach(regionEraser::enqueue);
            }
            done += io.canRead() ? telling.pump(config.limits().recoveredPerTick()) : 0;
            namespaces.pump();
            done += writer.pump();
            trailerWriter.pump();
            writer.pumpFlushes();
            if (telling.isComplete()) {
                regionReclaimer.pump();
            }
            regionEraser.pump();
            return done;
        }

        /// Has the superblock say in which generation of the store's disks this one is.
        private void pumpMembership() {
            Membership wanted = resources.member.wanted();
            boolean differs =
                    wanted != null && !wanted.equals(superblockWriter.current().membership());
            if (wanted != null && differs && !superblockWriter.isBusy() && !io.isWritingHalted()) {
                superblockWriter.replace(
                        superblockWriter.current().withMembership(wanted), () -> resources.member.onDurable(wanted));
            }
        }

        private boolean isOfObjects(DiskEntry entry) {
            return namespaces.all().get(entry.namespace()).parts().isEmpty();
        }

        /// Returns whether an entry of a caller is to be coded, if that makes it smaller: blocks whose values
        /// are bf16, and objects, of which only a look at their bytes tells.
        private boolean isCoded(DiskEntry entry) {
            if (!config.coded() || entry.bytes() < ChunkCoder.CHUNK_BYTES) {
                return false;
            }
            List<Part> parts = namespaces.all().get(entry.namespace()).parts();
            return parts.isEmpty()
                    || parts.stream().anyMatch(part -> part.shape().dtype() == Dtype.BF16);
        }

        DiskGeometry geometry() {
            return regionTable.geometry();
        }

        private void onAppendBegun(DiskEntry entry) {
            regionReclaimer.onReplaced(entry);
        }

        long epoch(long address) {
            return regionTable.regionAt(address).epoch();
        }

        void validate() {
            regionTable.validate();
            if (reads.isIdle()) {
                regionTable.requireUnread();
            }
        }

        boolean isRecovering() {
            return recovery == null || !recovery.isComplete();
        }

        boolean isIdle() {
            boolean asked = writer.isIdle() && writer.isFlushed() && reads.isIdle();
            boolean upkeep = namespaces.isIdle()
                    && trailerWriter.isIdle()
                    && regionReclaimer.isIdle()
                    && regionEraser.isIdle()
                    && !(isRecovering() && resources.member.wanted() != null);
            return asked && (upkeep || io.isWritingHalted());
        }

        DiskLogStats.Recovered recovered() {
            return recovery == null ? new DiskLogStats.Recovered(0, 0, 0, 0, 0, 0) : recovery.stats();
        }

        DiskLogStats.RegionCounts regionCounts() {
            return new DiskLogStats.RegionCounts(
                    regionTable.count(Region.State.FREE),
                    regionTable.count(Region.State.OPEN),
                    regionTable.count(Region.State.CLOSING),
                    regionTable.count(Region.State.CLOSED),
                    regionTable.count(Region.State.RECLAIMING),
                    regionTable.count(Region.State.FREEING),
                    regionTable.count(Region.State.BAD));
        }
    }
}
