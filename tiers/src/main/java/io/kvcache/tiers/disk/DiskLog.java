package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.LogHeader.FormatError;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.LogMount.SuperblockWriter;
import io.kvcache.tiers.disk.RegionReclaimer.RegionEraser;
import io.kvcache.tiers.disk.VerifyingReader.ChecksumPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/// Blocks and objects on one device: written one after another into regions, read by place, reclaimed a
/// region at a time, found again after a crash.
///
/// The log does nothing between ticks. A tick hands to the device what it takes, follows up what has ended,
/// and does a bounded amount of work; so a simulation drives it step by step, and a thread is put around it
/// last. It keeps no index: what lies where is the business of its [LogListener].
///
/// **Opening.** A log begins in state OPENING and gets to SERVING by ticks: it reads the superblock, formats
/// a blank device, and looks at one or two pages of each region. Then it appends and reads, and tells the
/// index region by region what it finds; reclaiming begins when all is told. A device that holds something
/// else is left alone, or formatted if the configuration says so.
///
/// **Promises.**
/// - A read that is good has the block's bytes: its checksum is verified, and a place that was reclaimed is
///   never read.
/// - What was appended before a [#flush] that was answered with true is found by every later opening, with
///   its bytes, until its region is reclaimed without its being kept; as long as the device keeps what it
///   reported as synced.
/// - What was not flushed may be found or not; if so, with its bytes.
/// - An entry that was dropped by reclaiming may come back after a crash, with its bytes, until the region's
///   being free is durable.
/// - An entry that was appended anew or buried ([#appendTombstone]) before a flush that was answered with true does
///   not come back, neither when the later entry or the tombstone is reclaimed.
///
/// **Failures.** A single one becomes a miss, or a block that is not written, and is counted. No space, a
/// failed sync, or a trailer that cannot be written end the writing ([TierState#READ_ONLY]): a log that goes
/// on after a failed sync would promise what it does not know. Too many failures in a row, or one operation
/// that hangs, end everything ([TierState#FAILED]). A log comes back by being opened again.
///
/// **Ownership.** The device and all memory are the caller's. Memory of an append or a read is the log's from
/// ACCEPTED until its outcome is told. The log itself needs no closing: the device is closed when the log is no
/// longer ticked.
///
/// **Threads.** One, the owner of the device.
public final class DiskLog {

    private final BlockDevice device;
    private final LogIo io;
    private final LogMount logMount;
    private final LogListener listener;
    private final LongFunction<MemorySegment> memory;
    private final @Nullable Executor checksumExecutor;
    private final DiskLogConfig config;
    private @Nullable MountedLog mountedLog;

    /// Begins to open a device that nothing else uses; the log's thread computes all checksums.
    ///
    /// @param memory see the other constructor
    public DiskLog(BlockDevice device, DiskLogConfig config, LogListener listener, LongFunction<MemorySegment> memory) {
        this(device, config, listener, memory, null);
    }

    /// Begins to open a device that nothing else uses.
    ///
    /// @param memory gives so many bytes of native memory, whole pages at an aligned address, that stay until the
    ///     device is closed. It is asked twice, at opening, by the log's thread, while nothing is on its way to
    ///     the device, so it may register what it gives with the device
    /// @param checksumExecutor computes checksums of large blocks beside the log's thread, until the log is idle
    ///     and no longer ticked; null when the log's thread does that too
    /// @throws IllegalArgumentException when the configuration is for a device of another size
    public DiskLog(
            BlockDevice device,
            DiskLogConfig config,
            LogListener listener,
            LongFunction<MemorySegment> memory,
            @Nullable Executor checksumExecutor) {
        if (config.geometry().deviceBytes() != device.size()) {
            throw new IllegalArgumentException("a geometry for %d bytes and a device of %d"
                    .formatted(config.geometry().deviceBytes(), device.size()));
        }
        this.device = device;
        this.io = new LogIo(device, config.limits());
        this.config = config;
        this.listener = listener;
        this.memory = memory;
        this.checksumExecutor = checksumExecutor;
        MemorySegment superblocks = memory.apply(2L * DiskGeometry.SUPERBLOCK_BYTES);
        this.logMount = new LogMount(io, config, superblocks, this::onMounted);
    }

    private void onMounted(SuperblockWriter superblockWriter) {
        mountedLog = new MountedLog(superblockWriter);
    }

    /// Does what there is to do, without waiting.
    ///
    /// @param nowNanos of a clock that never goes back
    /// @return how much was done; after 0 there is nothing to do before the device has done something
    public int tick(long nowNanos) {
        return tick(nowNanos, 0);
    }

    /// Like [#tick(long)], and waits for the device while there is nothing else to do.
    ///
    /// @param waitNanos the longest wait
    public int tick(long nowNanos, long waitNanos) {
        int done = io.poll(nowNanos, waitNanos);
        if (mountedLog != null) {
            done += mountedLog.pump();
        }
        io.startSync();
        io.start();
        return done;
    }

    /// What the log can do now.
    public TierState state() {
        return io.logHealth().state();
    }

    /// Why it cannot do more; empty while it can do all.
    public String cause() {
        return io.logHealth().cause();
    }

    /// Why the device was left alone, if it was.
    public @Nullable FormatError formatError() {
        return logMount.formatError();
    }

    /// Whether the index has not been told everything yet.
    public boolean isRecovering() {
        return mountedLog == null || mountedLog.isRecovering();
    }

    /// Whether nothing is waiting or on its way.
    public boolean isIdle() {
        return io.isIdle() && (mountedLog == null || mountedLog.isIdle());
    }

    /// The largest block or object that the log takes, in bytes.
    ///
    /// @throws IllegalStateException before it serves
    public long maxEntryBytes() {
        return requireServing().geometry().maxEntryBytes();
    }

    /// The number of a namespace, as entries have it, or -1 when it is not registered yet.
    public int namespaceId(Namespace namespace) {
        return mountedLog == null ? -1 : mountedLog.namespaces().idOf(namespace);
    }

    /// The namespaces by number.
    public List<Namespace> namespaces() {
        return mountedLog == null ? List.of() : mountedLog.namespaces().all();
    }

    /// Gives a namespace a number; [LogListener#onNamespaceRegistered] tells it when it is durable.
    ///
    /// @return ACCEPTED, REJECTED, or RETRY when the table has no room for it
    public SubmitResult register(Namespace namespace) {
        return mountedLog == null
                ? SubmitResult.REJECTED
                : mountedLog.namespaces().register(namespace);
    }

    /// Appends a block or object; [LogListener#onAppended] tells where it lies.
    ///
    /// @param entry what is to be known of it; its page is not looked at
    /// @param pieces native memory at aligned addresses, in whole pages, together as many as the bytes take.
    ///     It is written as it is, with what lies behind the last byte
    /// @return ACCEPTED, RETRY or REJECTED
    /// @throws IllegalArgumentException when the pieces do not fit the entry, it is too large, or its
    ///     namespace is not registered
    public SubmitResult append(DiskEntry entry, List<MemorySegment> pieces, long tag) {
        return append(entry, false, pieces, tag);
    }

    /// Appends a tombstone: what it replaces ([DiskEntry#replaces]) and was appended before it does not count
    /// after the next opening, which tells it by [LogListener#onTombstone]. For now nothing changes: what was
    /// buried can be read as long as its region is not reclaimed, and the index does not keep it then.
    ///
    /// It takes a row of its region's table and no room for bytes, and lasts until its region is reclaimed.
    /// [LogListener#onAppended] tells that it is written; its place is none to read from. [#flush] makes it
    /// durable.
    ///
    /// @param tombstone see [DiskEntry#tombstone()] and [DiskEntry#tombstone(int)]
    /// @return ACCEPTED, RETRY or REJECTED
    /// @throws IllegalArgumentException when it is no tombstone, or its namespace is not registered
    public SubmitResult appendTombstone(DiskEntry tombstone, long tag) {
        return append(tombstone, true, List.of(), tag);
    }

    private SubmitResult append(DiskEntry entry, boolean tombstone, List<MemorySegment> pieces, long tag) {
        if (!io.logHealth().canWrite()) {
            return SubmitResult.REJECTED;
        }
        BufferList checked = new BufferList(pieces, entry.bytes());
        if (entry.isTombstone() != tombstone || !entry.isValid()) {
            throw new IllegalArgumentException(
                    entry + ": blocks and objects of at least 1 byte are appended, tombstones of 0 are buried");
        }
        if (entry.bytes() > maxEntryBytes() || entry.namespace() >= namespaces().size()) {
            throw new IllegalArgumentException("%s: at most %d bytes and a namespace below %d are taken"
                    .formatted(entry, maxEntryBytes(), namespaces().size()));
        }
        BatchWriter writer = requireServing().writer();
        if (writer.isFull()) {
            return SubmitResult.RETRY;
        }
        writer.append(entry, checked, address -> listener.onAppended(tag, address));
        return SubmitResult.ACCEPTED;
    }

    /// Reads a block or object; [LogListener#onRead] tells how it went.
    ///
    /// @param address where it lies
    /// @param checksum that the bytes must have: CRC32C over the CRC32Cs of the 64 KiB chunks
    /// @param pieces native memory at aligned addresses that is filled in order: whole pages, as many as the
    ///     bytes take
    /// @param tag comes back with the outcome
    /// @return ACCEPTED, RETRY, GONE or REJECTED
    /// @throws IllegalArgumentException when the pieces do not fit the bytes, or no such place was ever
    ///     handed out
    public SubmitResult read(long address, int bytes, int checksum, List<MemorySegment> pieces, long tag) {
        return mountedLog == null
                ? SubmitResult.REJECTED
                : mountedLog.reads().read(address, new BufferList(pieces, bytes), checksum, tag);
    }

    /// Makes durable what was appended by now: all of it whose place was or will be told is found by every
    /// later opening, until its region is reclaimed. [LogListener#onFlushed] tells when.
    ///
    /// It waits until those blocks and the heads of their groups are written, and, where a group before one
    /// of them failed, until the trailer that alone leads to it is; then it syncs. False makes no promise at
    /// all, and the log is no longer serving.
    ///
    /// @return ACCEPTED or REJECTED
    public SubmitResult flush(long tag) {
        if (!io.logHealth().canWrite()) {
            return SubmitResult.REJECTED;
        }
        requireServing().flushWaiters().flushAppended(durable -> listener.onFlushed(tag, durable));
        return SubmitResult.ACCEPTED;
    }

    /// Takes nothing more. What waits ends as not done; what is on its way ends as it does, when ticked until
    /// idle.
    public void stop() {
        io.logHealth().markStopped();
    }

    /// What was done since the opening.
    public DiskLogStats stats() {
        MountedLog log = requireServing();
        Map<WriteKind, Long> written = new EnumMap<>(WriteKind.class);
        for (WriteKind kind : WriteKind.values()) {
            written.put(kind, io.written(kind));
        }
        return new DiskLogStats(
                log.writer().appended(),
                log.writer().appendedBytes(),
                log.writer().failedAppends(),
                written,
                io.failures(),
                log.reads().stats(),
                log.reclaimed(),
                log.recovered(),
                log.regionCounts());
    }

    /// Whether there are statistics.
    boolean hasStats() {
        return mountedLog != null;
    }

    /// Regions of the device.
    int regions() {
        return requireServing().geometry().regions();
    }

    /// Number of the life that the region of a place is in.
    long epoch(long address) {
        return requireServing().epoch(address);
    }

    /// Checks what must always hold.
    ///
    /// @throws IllegalStateException that names what does not
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

    /// The parts of a log whose device has been mounted, and the order in which they do their work.
    private final class MountedLog {

        private final RegionTable regionTable;
        private final NamespaceTable namespaces;
        private final RegionScan regionScan;
        private final TrailerWriter trailerWriter;
        private final RegionEraser regionEraser;
        private final BatchWriter writer;
        private final FlushWaiters flushWaiters;
        private final VerifyingReader reads;
        private final RegionReclaimer regionReclaimer;
        private final List<RegionEntryReader> entryReaders;
        private @Nullable LogRecovery recovery;

        MountedLog(SuperblockWriter superblockWriter) {
            Superblock superblock = superblockWriter.current();
            int regionPages = superblock.geometry().regionPages();
            MemorySlicer slicer = new MemorySlicer(memory.apply(bytes(regionPages, config)));
            regionTable = new RegionTable(superblock.geometry(), superblock.deviceId(), superblock.sequence());
            namespaces = new NamespaceTable(superblockWriter, io.logHealth(), listener);
            PagePool pages = new PagePool(slicer.allocate(PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES));
            regionScan = new RegionScan(io, regionTable, pages);
            trailerWriter = new TrailerWriter(io, regionTable, slicer.allocate(TrailerWriter.bytes(regionPages)));
            regionEraser =
                    new RegionEraser(io, regionTable, pages, config.reclaim().discard());
            writer = new BatchWriter(io, regionTable, pages, trailerWriter, config.limits(), this::onAppendBegun);
            flushWaiters = new FlushWaiters(io, writer, trailerWriter);
            ChecksumPool checksumPool = new ChecksumPool(checksumExecutor, device::wake);
            reads = new VerifyingReader(
                    io, regionTable, listener, config.limits().reads(), checksumPool);
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
                    flushWaiters,
                    regionEraser,
                    listener,
                    slicer.allocate(config.reclaim().rewriteBytes()),
                    config.reclaim());
        }

        private static long bytes(int regionPages, DiskLogConfig config) {
            return PagePool.PAGES * (long) DiskGeometry.PAGE_BYTES
                    + TrailerWriter.bytes(regionPages)
                    + LogRecovery.MAX_READERS * RegionEntryReader.bytes(regionPages)
                    + config.reclaim().rewriteBytes();
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

        /// Has every part do what it can do now.
        ///
        /// @return how much was done
        int pump() {
            int done = reads.pump();
            LogRecovery telling = recovery;
            if (telling == null) {
                regionScan.pump();
                if (!regionScan.isComplete() || io.logHealth().isWritingHalted()) {
                    return done;
                }
                telling = new LogRecovery(
                        regionTable,
                        listener,
                        trailerWriter,
                        regionEraser,
                        namespaces,
                        regionScan.newestFirst(),
                        entryReaders);
                recovery = telling;
                regionScan.unmarked().forEach(regionEraser::enqueue);
                io.logHealth().markServing();
            }
            done += io.logHealth().canRead() ? telling.pump(config.limits().recoveredPerTick()) : 0;
            namespaces.pump();
            done += writer.pump();
            trailerWriter.pump();
            flushWaiters.pump();
            if (telling.isComplete()) {
                regionReclaimer.pump();
            }
            regionEraser.pump();
            return done;
        }

        DiskGeometry geometry() {
            return regionTable.geometry();
        }

        NamespaceTable namespaces() {
            return namespaces;
        }

        private void onAppendBegun(DiskEntry entry) {
            regionReclaimer.onReplaced(entry);
        }

        BatchWriter writer() {
            return writer;
        }

        FlushWaiters flushWaiters() {
            return flushWaiters;
        }

        VerifyingReader reads() {
            return reads;
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
            boolean asked = writer.isIdle() && flushWaiters.isIdle() && reads.isIdle();
            boolean upkeep = namespaces.isIdle()
                    && trailerWriter.isIdle()
                    && regionReclaimer.isIdle()
                    && regionEraser.isIdle()
                    && !isRecovering();
            return asked && (upkeep || io.logHealth().isWritingHalted());
        }

        DiskLogStats.Recovered recovered() {
            return recovery == null
                    ? new DiskLogStats.Recovered(0, 0, 0, 0, 0, 0)
                    : new DiskLogStats.Recovered(
                            recovery.entries(),
                            recovery.tombstones(),
                            recovery.invalidEntries(),
                            recovery.lostEntries(),
                            recovery.missingRegions(),
                            recovery.discardedRegions());
        }

        DiskLogStats.Reclaimed reclaimed() {
            return regionReclaimer.stats();
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
