package io.kvcache.gpu.engine;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.engine.LoadSources.Pieces;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.HostPageCopier;
import io.kvcache.gpu.paging.PageCopier;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.paging.PieceList;
import io.kvcache.gpu.tier.DeviceStaging;
import io.kvcache.gpu.tier.DeviceStaging.StagedBlock;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/// Copies between host slots and an engine's pages: a stream for each direction, and behind each copy an
/// event. Slots stay pinned until the device has done with them.
///
/// Stored blocks become visible only after the engine confirms them. The event of a process that died counts as
/// reached, whatever its memory holds.
///
/// **Threads.** The session's.
final class TransferQueue {

    private static final Logger LOG = System.getLogger(TransferQueue.class.getName());

    /// Stores that were not sealed yet.
    private static final int MAX_STORES = 256;

    private final DeviceDriver driver;
    private final boolean queued;
    private final EngineCopyThreshold threshold;
    private final long maxEventNanos;
    private final ResourceScope resources = new ResourceScope();
    private final DeviceStream loadStream;
    private final DeviceStream storeStream;
    private final DeviceEvent loaded;
    private final DeviceEvent storedEvent;
    private final Deque<PendingLoad> loads = new ArrayDeque<>();
    private final Map<Integer, PendingStore> stores = new HashMap<>();
    private final Set<DeviceSpan> adopted = new LinkedHashSet<>();
    private @Nullable HostPageCopier copier;
    private @Nullable PageCopier pageCopier;
    private boolean prepared;
    private int nextStore;

    /// A copy in flight, and its list of pieces if a kernel makes it.
    private static final class PendingCopy {
        private final DeviceEvent event;
        private @Nullable PieceList list;

        PendingCopy(DeviceEvent on) {
            this.event = on;
        }

        boolean isReached() {
            boolean reached = event.isReached();
            if (reached && list != null) {
                list.release();
                list = null;
            }
            return reached;
        }
    }

    /// @param pendingCopy over when the device has read the slots
    /// @param giveBack gives back what it then needs no more
    private record PendingLoad(PendingCopy pendingCopy, Runnable giveBack) {}

    private static final class PendingStore {
        private final PendingCopy pendingCopy;
        private final List<StoredBlock> blocks;
        private @Nullable IntConsumer whenSealed;

        PendingStore(PendingCopy pendingCopy, List<StoredBlock> blocks) {
            this.pendingCopy = pendingCopy;
            this.blocks = blocks;
        }
    }

    /// A block that an engine stores.
    ///
    /// @param writer its room in host memory, or the reason why there is none
    /// @param staged its room on the device, for the tier there; null where it has none
    record StoredBlock(
            BlockKey key, BlockWriter writer, @Nullable StagedBlock staged) implements AutoCloseable {

        boolean isWriting() {
            return writer.outcome() == PutOutcome.RESERVED;
        }

        /// Returns whether it can be found, now or with those before it. The bytes are in both places.
        boolean seal() {
            if (!isWriting()) {
                return false;
            }
            if (staged == null) {
                return writer.seal() != SealOutcome.DROPPED;
            }
            ChunkedCrc sum = new ChunkedCrc();
            sum.update(writer.segment());
            staged.seal(key, sum.value());
            return writer.seal(sum.value()) != SealOutcome.DROPPED;
        }

        /// Gives back what was not sealed.
        @Override
        public void close() {
            writer.close();
        }

        /// Gives back all; nothing is on its way.
        void abandon() {
            writer.close();
            if (staged != null) {
                staged.close();
            }
        }
    }

    /// @param queued whether the driver queues copies of the slots: it waits itself for copies of memory that is
    ///     not registered, within the call that asks for them
    /// @param threshold from which size on pieces are copied and not moved by a kernel
    /// @param longestEventNanos how long an event is waited for where the driver does not queue copies
    TransferQueue(DeviceDriver driver, boolean queued, EngineCopyThreshold threshold, long longestEventNanos) {
        this.driver = driver;
        this.queued = queued;
        this.threshold = threshold;
        this.maxEventNanos = longestEventNanos;
        try {
            loadStream = resources.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            storeStream = resources.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            loaded = resources.register(driver.ipc().createSharedEvent(), DeviceEvent::close);
            storedEvent = resources.register(driver.ipc().createSharedEvent(), DeviceEvent::close);
        } catch (DeviceException refused) {
            throw resources.releaseAfter(refused);
        }
    }

    /// Reached when all is in its pages that was begun to be loaded.
    DeviceEvent loadedEvent() {
        return loaded;
    }

    /// Reached when all pages were read that were begun to be stored.
    DeviceEvent storedEvent() {
        return storedEvent;
    }

    /// Gets ready for copies of a pool. A kernel moves small pieces, which takes registered host memory. It and its
    /// lists take device memory, so both come with the first pool that has small pieces.
    ///
    /// @throws DeviceException when the device is of no use
    void prepare(PagedLayout layout) {
        boolean small = HostPageCopier.supports(layout) && threshold.canUseKernel(layout.pieceBytes());
        if (!queued || prepared || !small) {
            return;
        }
        prepared = true;
        try {
            copier = HostPageCopier.open(driver, threshold::thresholdFor);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            LOG.log(Level.INFO, "an engine''s small pieces are copied one by one: {0}", refused.getMessage());
        }
    }

    /// A list for a kernel that moves these blocks; null when they are to be copied.
    private @Nullable PieceList acquireList(PagedLayout layout, List<MemorySegment> blocks, List<int[]> pages) {
        return copier == null ? null : copier.acquireList(layout, blocks, pages);
    }

    private void waitFor(DeviceStream stream, @Nullable DeviceEvent after) {
        if (queued && after != null) {
            stream.waitFor(after);
        }
    }

    /// Copies whole blocks to pages.
    ///
    /// @param sources become this one's, whatever happens
    /// @param pages of each block, checked
    /// @param after the pages are free, or null when they are already
    /// @throws IllegalArgumentException when that is not reached in time; nothing is begun then
    void load(PagedLayout layout, LoadSources sources, List<int[]> pages, @Nullable DeviceEvent after) {
        load(layout, sources.pieces(layout, 0, pages), after, loaded, sources::close);
    }

    /// Copies blocks to pages, behind all that was loaded before: what lies on the device from there, the rest from
    /// host memory.
    ///
    /// @param pieces of all blocks, which stay where they are until `giveBack`
    /// @param after the pages are free, or null when they are already
    /// @param told is recorded behind the copy
    /// @param giveBack run once, when the device has read the blocks or never will
    /// @throws IllegalArgumentException when `after` is not reached in time; nothing is begun then
    void load(PagedLayout layout, Pieces pieces, @Nullable DeviceEvent after, DeviceEvent told, Runnable giveBack) {
        PendingCopy pendingCopy = new PendingCopy(openEvent(after, giveBack));
        loads.add(new PendingLoad(pendingCopy, giveBack));
        if (!pieces.onDevice().isEmpty()) {
            adopt(pieces.deviceMemory());
            waitFor(loadStream, after);
            pageCopier().scatter(loadStream, layout, pieces.onDevice());
        }
        PieceList list = acquireList(layout, pieces.blocks(), pieces.pages());
        if (list == null) {
            waitFor(loadStream, after);
            HostPageCopier.copy(loadStream, layout, pieces.blocks(), pieces.pages(), CopyDirection.TO_DEVICE);
        } else {
            pendingCopy.list = list;
            list.load(loadStream, layout, pieces.blocks(), pieces.pages(), after);
        }
        markCompletion(loadStream, pendingCopy, told);
    }

    /// Makes memory of the tier's known to this driver. What a tier had before it failed is no longer its.
    private void adopt(Set<DeviceSpan> memory) {
        if (!adopted.containsAll(memory)) {
            adopted.forEach(driver::disown);
            adopted.clear();
            for (DeviceSpan span : memory) {
                driver.adopt(span);
                adopted.add(span);
            }
        }
    }

    /// Moves blocks of the tier's to pages. It takes memory and some milliseconds of the device, so it comes with
    /// the first load that needs it; where the device has none left, all pieces are copied.
    private PageCopier pageCopier() {
        PageCopier present = pageCopier;
        if (present == null) {
            try {
                present = threshold.openPageCopier(driver);
            } catch (DeviceException refused) {
                if (refused.error().isFatal()) {
                    throw refused;
                }
                LOG.log(Level.INFO, "pieces are copied within the device one by one: {0}", refused.getMessage());
                present = PageCopier.open(driver, CopyThreshold.ALWAYS_COPY);
            }
            pageCopier = present;
        }
        return present;
    }

    /// Opens events that other processes can wait for; they are closed with this.
    List<DeviceEvent> openSharedEvents(int count) {
        List<DeviceEvent> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            events.add(resources.register(driver.ipc().createSharedEvent(), DeviceEvent::close));
        }
        return List.copyOf(events);
    }

    boolean canStore() {
        return stores.size() < MAX_STORES;
    }

    /// Copies pages to where blocks are being written: to host memory, and within the device to where its tier
    /// takes those from that it is to keep.
    ///
    /// @param stored become this one's, whatever happens; of those that reserved nothing, nothing is copied
    /// @param pages of each block
    /// @param staging where the blocks have their room on the device; null where none has
    /// @param after the pages are filled, or null when they are already
    /// @return the number of the store
    /// @throws IllegalArgumentException when that is not reached in time; nothing is begun then
    int store(
            PagedLayout layout,
            List<StoredBlock> stored,
            int[][] pages,
            @Nullable DeviceStaging staging,
            @Nullable DeviceEvent after) {
        PendingCopy pendingCopy = new PendingCopy(openEvent(after, () -> stored.forEach(StoredBlock::abandon)));
        int number = nextStore++;
        stores.put(number, new PendingStore(pendingCopy, stored));
        List<MemorySegment> blocks = new ArrayList<>();
        List<int[]> pagesOf = new ArrayList<>();
        List<DeviceBlock> onDevice = new ArrayList<>();
        for (int block = 0; block < stored.size(); block++) {
            StoredBlock each = stored.get(block);
            if (!each.isWriting()) {
                continue;
            }
            blocks.add(each.writer.segment());
            pagesOf.add(pages[block]);
            if (each.staged != null) {
                onDevice.add(new DeviceBlock(each.staged.span(), pages[block]));
            }
        }
        if (staging != null && !onDevice.isEmpty()) {
            adopt(Set.of(staging.allocation()));
            waitFor(storeStream, after);
            pageCopier().gather(storeStream, layout, onDevice);
        }
        PieceList list = acquireList(layout, blocks, pagesOf);
        if (list == null) {
            waitFor(storeStream, after);
            HostPageCopier.copy(storeStream, layout, blocks, pagesOf, CopyDirection.TO_HOST);
        } else {
            pendingCopy.list = list;
            list.store(storeStream, layout, blocks, pagesOf, after);
        }
        markCompletion(storeStream, pendingCopy, storedEvent);
        return number;
    }

    /// The event behind a copy that may be queued now; when there is none to be had, what the copy is of is
    /// given back.
    private DeviceEvent openEvent(@Nullable DeviceEvent after, Runnable giveBack) {
        try {
            if (!queued && after != null && !after.await(maxEventNanos)) {
                throw new IllegalArgumentException("its event was not reached in %s ms, and a copy cannot wait for it"
                                .formatted(TimeUnit.NANOSECONDS.toMillis(maxEventNanos))
                        + " as this host's memory is not registered with the device; wait for it before you ask");
            }
            return driver.openEvent();
        } catch (DeviceException | IllegalArgumentException refused) {
            giveBack.run();
            throw refused;
        }
    }

    private static void markCompletion(DeviceStream stream, PendingCopy pendingCopy, DeviceEvent told) {
        stream.record(pendingCopy.event);
        stream.record(told);
    }

    /// Has a store's blocks findable once their bytes are there.
    ///
    /// @param then told how many blocks can be found now, or will be once those before them can
    /// @throws IllegalArgumentException when the store does not exist, or was sealed before
    void seal(int store, IntConsumer then) {
        PendingStore wanted = stores.get(store);
        if (wanted == null || wanted.whenSealed != null) {
            throw new IllegalArgumentException("store " + store + " is not one that waits to be sealed");
        }
        wanted.whenSealed = then;
    }

    /// Ends what has arrived.
    void poll() {
        while (!loads.isEmpty() && loads.getFirst().pendingCopy.isReached()) {
            PendingLoad load = loads.remove();
            load.pendingCopy.event.close();
            load.giveBack.run();
        }
        for (Map.Entry<Integer, PendingStore> each : List.copyOf(stores.entrySet())) {
            PendingStore store = each.getValue();
            IntConsumer then = store.whenSealed;
            boolean asked = then != null || store.pendingCopy.list != null;
            if (asked && store.pendingCopy.isReached() && then != null) {
                stores.remove(each.getKey());
                store.pendingCopy.event.close();
                then.accept(seal(store.blocks));
            }
        }
    }

    private static int seal(List<StoredBlock> blocks) {
        int sealed = 0;
        for (StoredBlock block : blocks) {
            sealed += block.seal() ? 1 : 0;
            block.close();
        }
        return sealed;
    }

    /// Returns whether [#poll] may soon have something to finish.
    boolean hasPending() {
        return !loads.isEmpty() || stores.values().stream().anyMatch(store -> store.whenSealed != null);
    }

    /// Waits until the device does nothing for us any more. A question that is refused is asked
    /// again.
    ///
    /// @return whether it does, or is gone
    boolean drain(long timeoutNanos) {
        long since = System.nanoTime();
        while (!isDeviceIdle()) {
            if (System.nanoTime() - since > timeoutNanos) {
                return false;
            }
            LockSupport.parkNanos(this, DeviceEvent.POLL_NANOS);
        }
        return true;
    }

    private boolean isDeviceIdle() {
        try {
            return loadStream.isIdle() && storeStream.isIdle();
        } catch (DeviceException failed) {
            return failed.error().isFatal();
        }
    }

    /// Gives back what blocks are pinned or reserved for copies that are over, or never will be.
    void abandon() {
        loads.forEach(load -> load.giveBack.run());
        loads.clear();
        List<StoredBlock> blocks = new ArrayList<>();
        stores.values().forEach(store -> blocks.addAll(store.blocks));
        stores.clear();
        blocks.forEach(StoredBlock::abandon);
    }

    /// Gives events and streams back, also those of copies that were never asked for.
    ///
    /// @throws DeviceException the first that the device refused
    void close() {
        loads.forEach(load -> resources.register(load.pendingCopy.event, DeviceEvent::close));
        stores.values().forEach(store -> resources.register(store.pendingCopy.event, DeviceEvent::close));
        HostPageCopier open = copier;
        if (open != null) {
            copier = null;
            resources.register(open::close);
        }
        PageCopier within = pageCopier;
        if (within != null) {
            pageCopier = null;
            resources.register(within::close);
        }
        resources.releaseAll();
    }

    /// From where on a door copies pieces rather than have a kernel move them: measured with the first engine
    /// that has small ones, as all have the same device.
    ///
    /// **Threads.** Any; a session that asks meanwhile waits for the measurement.
    static final class EngineCopyThreshold {

        private @Nullable CopyThreshold known;
        private @Nullable CopyThreshold knownWithin;

        EngineCopyThreshold() {}

        /// @param known of copies of either kind
        EngineCopyThreshold(CopyThreshold known) {
            this.known = known;
            knownWithin = known;
        }

        /// Opens what moves blocks within the device, after a measurement with the first engine that needs it.
        synchronized PageCopier openPageCopier(DeviceDriver driver) {
            PageCopier copier =
                    knownWithin == null ? PageCopier.calibrated(driver) : PageCopier.open(driver, knownWithin);
            knownWithin = copier.threshold();
            return copier;
        }

        /// Returns whether a kernel may be faster for pieces of this size, as far as is known.
        synchronized boolean canUseKernel(long pieceBytes) {
            return known == null || pieceBytes < known.pieceBytes();
        }

        /// Measures it, or knows it.
        synchronized CopyThreshold thresholdFor(HostPageCopier copier) {
            CopyThreshold present = known;
            if (present == null) {
                present = copier.measure(System::nanoTime);
                known = present;
            }
            return present;
        }
    }
}
