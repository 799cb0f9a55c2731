package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import io.kvcache.gpu.tier.DeviceRegions.DeviceRegion;
import io.kvcache.gpu.tier.DeviceStaging.StagedBlock;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/// A device's memory as a [Tier]: whole blocks, each in one piece, copied from and to host slots in
/// batches.
///
/// It keeps nothing beyond its closing: a flush is answered with false, and it has nothing to tell when
/// it opens. Its memory is a ring of regions; what lies in the oldest is offered to the store before it
/// is used again, so the store's own order decides what stays; uses by [#acquire] count there. What it holds is not
/// reclaimed.
///
/// **Failure.** Whatever the device refuses takes the tier out. What was on its way is told only when
/// the device does nothing any more: until then it might still write to host memory. Of a device that
/// lives on, the memory is given back once all tables are closed, as engines may be reading there.
public final class DeviceTier implements Tier {

    private static final long CLOSE_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final String name;
    private final DeviceGeometry geometry;
    private final DeviceTierResources device;
    private final DeviceRegions regions;
    private final DeviceBlockIndex index;
    private final DeviceStaging staging;
    private final DeviceReclaimer reclaimer;
    private final ChecksumScrubber scrubber;
    /// Of engines in this process.
    private final List<DevicePages> pagePools = new CopyOnWriteArrayList<>();
    private final AtomicReference<@Nullable Resizing> resizing = new AtomicReference<>();
    private @Nullable Resizing begun;
    private final TierListener listener;
    private final Queue<Runnable> notifications = new ArrayDeque<>();
    private final String path;
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats stats;
    private volatile @Nullable Thread waiting;
    private volatile boolean woken;
    private long written;
    private long writtenBytes;
    private long writtenPages;
    private long writesFailed;
    private long readsGood;
    private long readErrors;
    private long checksumErrors;
    private @Nullable DeviceException failure;
    private boolean notifiedFailure;
    private boolean closed;
    private boolean closeAttempted;

    /// What was asked for.
    private record Resizing(int regions, CompletableFuture<Long> done) {}

    /// Takes what it needs of a device; the first tick serves.
    ///
    /// @param driver is the tier's from here on, and closed when this fails
    /// @param slots of the store, to be registered with the device; an empty segment for none
    /// @throws DeviceException when the device refuses
    public DeviceTier(
            String name, DeviceDriver driver, DeviceGeometry geometry, MemorySegment slots, TierListener listener) {
        this.name = name;
        this.geometry = geometry;
        this.listener = listener;
        device = DeviceTierResources.open(driver, geometry, slots);
        path = describe(device);
        index = new DeviceBlockIndex(device.memory().span());
        regions = new DeviceRegions(device.memory(), geometry);
        staging = new DeviceStaging(device.memory().span(), geometry.regionBytes());
        reclaimer = new DeviceReclaimer(regions, index, device.internalCopies(), listener, geometry);
        scrubber = new ChecksumScrubber(driver, index, geometry.regionBytes());
        stats = TierStats.empty(path, geometry.bytes());
    }

    private static String describe(DeviceTierResources device) {
        try {
            return device.describe();
        } catch (DeviceException refused) {
            device.close(() -> {});
            throw refused;
        }
    }

    /// Pins the leading blocks of a chain that are on the device, from one on, and says where they lie.
    /// Any thread.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    public DeviceBlockTable acquire(BlockChain chain, int from) {
        return index.acquire(chain, from);
    }

    /// The same, once the device has computed the checksum of each block, and as far as they are those that the
    /// blocks were stored with. What differs is not found there any more. Any thread.
    ///
    /// **Errors.** The answer ends with [DeviceException] of a device that runs no code.
    ///
    /// @return completed by the tier's thread; the table is the caller's to close
    public CompletionStage<DeviceBlockTable> acquireVerified(BlockChain chain, int from) {
        CompletableFuture<DeviceBlockTable> answer = scrubber.submit(() -> acquire(chain, from));
        wake();
        return answer;
    }

    /// Begins to use a part of the memory for pages of an engine in this process. Any thread.
    ///
    /// @throws IllegalArgumentException when there is no room beside what others have asked for
    /// @throws DeviceException when the device is out
    DevicePages openPages(Namespace namespace, long maxBytes) {
        long pageBytes = DeviceGeometry.pages(DevicePages.blockBytes(namespace));
        int perRegion = (int) (geometry.regionBytes() / pageBytes);
        synchronized (pagePools) {
            int left = geometry.maxPageRegions()
                    - pagePools.stream().mapToInt(DevicePages::maxRegions).sum();
            int maxPages = (int) Math.min(maxBytes / pageBytes, (long) left * perRegion);
            if (maxPages < 1) {
                throw new IllegalArgumentException("%s bytes of %s for pages of %s; beside other paged caches it has %s"
                        .formatted(maxBytes, name, pageBytes, Math.max(0, left) * geometry.regionBytes()));
            }
            if (state == TierState.FAILED || state == TierState.STOPPED) {
                throw new DeviceException(DeviceError.DEVICE_LOST, name, "is " + state + " " + cause);
            }
            DevicePages pages =
                    new DevicePages(device.memory().span(), index, this::wake, namespace, maxPages, perRegion);
            pagePools.add(pages);
            wake();
            return pages;
        }
    }

    /// Has another number of bytes from now on. Any thread.
    ///
    /// @return completed by the tier's thread with the bytes that it has then: when it has as many as were asked
    ///     for, the device has no more memory, or another number is asked for
    /// @throws IllegalArgumentException for fewer bytes than it takes, or more
    CompletableFuture<Long> resize(long bytes) {
        Resizing asked = new Resizing(geometry.regionsFor(bytes), new CompletableFuture<>());
        Resizing before = resizing.getAndSet(asked);
        if (before != null) {
            before.done.complete(stats.capacityBytes());
        }
        if (state == TierState.FAILED) {
            asked.done.complete(0L);
        }
        wake();
        return asked.done;
    }

    private int resize() {
        Resizing asked = resizing.get();
        if (asked == null) {
            return 0;
        }
        if (!asked.equals(begun)) {
            begun = asked;
            regions.resize(asked.regions);
        }
        if (regions.isResized() && resizing.compareAndSet(asked, null)) {
            publish();
            asked.done.complete(regions.bytes());
            return 1;
        }
        return 0;
    }

    /// Returns where engines stage the blocks that they store. Any thread.
    DeviceStaging staging() {
        return staging;
    }

    /// Returns the index of its blocks. Any thread.
    DeviceBlockIndex index() {
        return index;
    }

    @Override
    public String name() {
        return name;
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
    public long maxBlockBytes() {
        return geometry.regionBytes();
    }

    @Override
    public boolean isRecovering() {
        return state == TierState.OPENING;
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        if (state != TierState.SERVING || block.bytes() > maxBlockBytes()) {
            return SubmitResult.REJECTED;
        }
        return copyIn(block, pages, tag);
    }

    @Override
    public SubmitResult read(TierRead read) {
        return state == TierState.SERVING ? copyOut(read) : SubmitResult.REJECTED;
    }

    /// Takes a block that fits a region: where it lies if it is an engine's page, from the device if an engine has
    /// staged it there, else from host memory.
    private SubmitResult copyIn(TierBlock block, List<MemorySegment> pages, long tag) {
        for (DevicePages pool : pagePools) {
            DeviceEntry page = pool.claim(block);
            if (page != null) {
                onWriteEnded(page, true);
                notifications.add(() -> listener.onWritten(tag, page.place()));
                return SubmitResult.ACCEPTED;
            }
        }
        StagedBlock staged = staging.claim(block);
        CopyQueue copyQueue = staged == null ? device.uploads() : device.internalCopies();
        DeviceEntry entry = copyQueue.isFull() ? null : regions.allocate(block, false);
        if (entry == null) {
            if (staged != null) {
                staged.returnClaim();
            }
            return SubmitResult.RETRY;
        }
        entry.region().beginUse();
        if (staged != null) {
            copyQueue.batch().add(staged.span().address(), entry.span().address(), block.bytes());
        } else {
            forEachPiece(
                    pages,
                    block.bytes(),
                    (offset, piece) ->
                            copyQueue.batch().add(piece, entry.span().address().plus(offset)));
        }
        copyQueue.onComplete(copied -> {
            entry.region().endUse();
            if (staged != null) {
                staged.close();
            }
            onWriteEnded(entry, copied);
            listener.onWritten(tag, copied ? entry.place() : -1);
        });
        return SubmitResult.ACCEPTED;
    }

    private void onWriteEnded(DeviceEntry entry, boolean copied) {
        if (copied) {
            index.add(entry);
            written++;
            writtenBytes += entry.block().bytes();
            writtenPages += DeviceGeometry.pages(entry.block().bytes());
        } else {
            writesFailed++;
        }
    }

    private SubmitResult copyOut(TierRead read) {
        DeviceRegion region = regions.regionAt(read.address());
        if (region == null) {
            return SubmitResult.GONE;
        }
        CopyQueue copyQueue = device.downloads();
        if (copyQueue.isFull()) {
            return SubmitResult.RETRY;
        }
        long start = DeviceEntry.offsetOf(read.address());
        region.beginUse();
        forEachPiece(
                read.pages(),
                read.bytes(),
                (offset, piece) -> copyQueue
                        .batch()
                        .add(
                                piece,
                                region.span(start + offset, piece.byteSize()).address()));
        copyQueue.onComplete(copied -> {
            region.endUse();
            listener.onRead(read.tag(), copied ? verifyChecksum(read) : onUnreadable());
        });
        return SubmitResult.ACCEPTED;
    }

    private Outcome onUnreadable() {
        readErrors++;
        return Outcome.UNREADABLE;
    }

    private Outcome verifyChecksum(TierRead read) {
        ChunkedCrc crc = new ChunkedCrc();
        forEachPiece(read.pages(), read.bytes(), (_, piece) -> crc.update(piece));
        if (crc.value() == read.checksum()) {
            readsGood++;
            return Outcome.SUCCESS;
        }
        checksumErrors++;
        return Outcome.CORRUPT;
    }

    /// Visits the pieces of the pages that hold the first `bytes` bytes, each with its offset.
    private static void forEachPiece(List<MemorySegment> pages, long bytes, BiConsumer<Long, MemorySegment> use) {
        long offset = 0;
        for (MemorySegment piece : pages) {
            long length = Math.min(piece.byteSize(), bytes - offset);
            if (length > 0) {
                use.accept(offset, piece.asSlice(0, length));
                offset += length;
            }
        }
    }

    /// {@inheritDoc}
    ///
    /// There is nothing that could come back at the next opening; engines no longer find it.
    @Override
    public SubmitResult tombstone(Tombstone burial, long tag) {
        if (state != TierState.SERVING) {
            return SubmitResult.REJECTED;
        }
        index.tombstone(burial);
        reclaimer.tombstone(burial);
        pagePools.forEach(pages -> pages.tombstone(burial, listener));
        notifications.add(() -> listener.onWritten(tag, 0));
        return SubmitResult.ACCEPTED;
    }

    @Override
    public SubmitResult flush(long tag) {
        if (state != TierState.SERVING) {
            return SubmitResult.REJECTED;
        }
        notifications.add(() -> listener.onFlushed(tag, false));
        return SubmitResult.ACCEPTED;
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        if (state == TierState.OPENING) {
            state = TierState.SERVING;
            listener.onRecoveryEnded();
        }
        int done = advance();
        if (done == 0) {
            await(waitNanos);
        }
        publish();
        return done;
    }

    /// Waits until something was done, [#wake] is called, or the time is over. A device has no completion that
    /// a thread could wait for together with a wake-up. So while something is on its way, it looks again after
    /// short pauses.
    private void await(long nanos) {
        if (nanos <= 0) {
            return;
        }
        waiting = Thread.currentThread();
        long since = System.nanoTime();
        long left = nanos;
        while (!woken && left > 0) {
            LockSupport.parkNanos(this, isWorking() ? Math.min(left, DeviceEvent.POLL_NANOS) : left);
            if (isWorking() && advance() > 0) {
                break;
            }
            left = nanos - (System.nanoTime() - since);
        }
        waiting = null;
        woken = false;
    }

    private boolean isWorking() {
        return device.isBusy() || scrubber.isBusy();
    }

    private int advance() {
        int done = notifications.size();
        for (Runnable told = notifications.poll(); told != null; told = notifications.poll()) {
            told.run();
        }
        if (failure != null) {
            settle();
            return done;
        }
        done += index.reportUses(listener);
        try {
            done += state == TierState.STOPPED && !reclaimer.isBusy() ? 0 : reclaimer.tick();
            done += scrubber.tick();
            done += tickPages();
            done += resize();
            return done + device.tick();
        } catch (DeviceException failed) {
            fail(failed);
            return done;
        }
    }

    private int tickPages() {
        int done = 0;
        for (DevicePages pages : pagePools) {
            done += pages.tick(regions, listener);
        }
        pagePools.removeIf(DevicePages::isGivenBack);
        return done;
    }

    private void fail(DeviceException failed) {
        failure = failed;
        cause = String.valueOf(failed.getMessage());
        index.close();
        staging.close();
        pagePools.forEach(DevicePages::fail);
        Resizing asked = resizing.getAndSet(null);
        if (asked != null) {
            asked.done.complete(0L);
        }
        scrubber.stop();
        state = TierState.FAILED;
        settle();
    }

    /// Tells what was on its way, once the device does nothing any more: by itself, or because it was
    /// closed.
    private void settle() {
        DeviceException failed = failure;
        if (failed == null || closed) {
            return;
        }
        boolean ends = failed.error().isFatal();
        if (ends) {
            closeDevice();
        }
        if (!notifiedFailure && (ends || isDeviceIdle())) {
            notifiedFailure = true;
            device.abandon();
        }
        if (notifiedFailure && !closed && !isHeld()) {
            closeDevice();
        }
    }

    /// Returns whether others may be reading or writing its memory.
    private boolean isHeld() {
        return regions.hasPinned() || staging.isInUse() || pagePools.stream().anyMatch(DevicePages::isHeld);
    }

    /// Not while the device cannot say; one that has ended is closed at the next turn, whatever it was
    /// doing.
    private boolean isDeviceIdle() {
        try {
            return device.isIdle() && scrubber.isIdle();
        } catch (DeviceException unknown) {
            if (unknown.error().isFatal()) {
                failure = unknown;
            }
            return false;
        }
    }

    private void closeDevice() {
        pagePools.forEach(DevicePages::fail);
        device.close(scrubber::close);
        closed = true;
    }

    private void publish() {
        stats = new TierStats(
                path,
                regions.bytes(),
                written,
                writtenBytes,
                writesFailed,
                writtenPages + reclaimer.keptBytes(),
                readsGood,
                readErrors,
                checksumErrors + scrubber.damagedBlocks(),
                reclaimer.reclaimedRegions(),
                reclaimer.keptBlocks(),
                0,
                TierStats.Coding.NONE);
    }

    @Override
    public void wake() {
        woken = true;
        LockSupport.unpark(waiting);
    }

    @Override
    public boolean isIdle() {
        boolean working = isWorking() || reclaimer.isBusy();
        return notifications.isEmpty() && (failure == null ? !working : closed);
    }

    @Override
    public void stop() {
        if (failure == null) {
            state = TierState.STOPPED;
        }
    }

    @Override
    public TierStats stats() {
        return stats;
    }

    /// Waits a bounded time for what is on its way, and for tables that are open, and lets go of the
    /// device. A second call does not wait.
    ///
    /// @throws IllegalStateException when they do not end: the device stays open then, as its memory is
    ///     in use; the store's slots are let go of once no copy is on its way
    @Override
    public void close() {
        closeWithin(closeAttempted ? TimeUnit.MILLISECONDS.toNanos(1) : CLOSE_TIMEOUT_NANOS);
    }

    /// The same, with another bound.
    void closeWithin(long patience) {
        stop();
        index.close();
        staging.close();
        scrubber.stop();
        boolean over = isFinished();
        closeAttempted = true;
        for (long waited = 0; !over && waited < patience; waited += TimeUnit.MILLISECONDS.toNanos(1)) {
            tick(waited, TimeUnit.MILLISECONDS.toNanos(1));
            over = isFinished();
        }
        if (!over) {
            if (!closed && !device.isBusy() && isDeviceIdle()) {
                device.unregisterSlots();
            }
            throw new IllegalStateException(name + " is in use: " + use());
        }
        if (!closed) {
            closeDevice();
        }
    }

    private String use() {
        if (pagePools.stream().anyMatch(DevicePages::isHeld)) {
            return "sequences have pages there";
        }
        if (regions.hasPinned()) {
            return "a device table is open";
        }
        return staging.isInUse() ? "an engine is storing blocks" : "a copy does not end";
    }

    private boolean isFinished() {
        return isIdle() && (closed || (!isHeld() && isDeviceIdle()));
    }
}
