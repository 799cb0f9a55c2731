package io.kvcache.gpu.engine;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.paging.StagingRoom;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Copies between host slots and an engine's pages: a stream for each direction, and behind each copy an
/// event. Slots stay pinned until the device has done with them.
///
/// What was copied out of pages becomes findable only when the engine says that all was well: an event of
/// a process that died counts as reached, whatever its memory holds then.
///
/// **Threads.** The session's.
final class Transfers {

    /// Stores that were not sealed yet.
    private static final int MOST_STORES = 256;

    private final DeviceDriver driver;
    private final PieceWay way;
    private final long longestEventNanos;
    private final ResourceScope holdings = new ResourceScope();
    private final DeviceStream in;
    private final DeviceStream out;
    private final DeviceEvent loaded;
    private final DeviceEvent stored;
    private final Deque<Load> loads = new ArrayDeque<>();
    private final Map<Integer, Store> stores = new HashMap<>();
    private int nextStore;

    /// What the device does, and the room that it has for that, if any.
    private static final class Work {
        private final DeviceEvent on;
        private @Nullable StagingRoom room;

        Work(DeviceEvent on) {
            this.on = on;
        }

        boolean reached() {
            boolean reached = on.isReached();
            if (reached && room != null) {
                room.release();
                room = null;
            }
            return reached;
        }
    }

    /// @param work over when the device has read the table's slots
    private record Load(Work work, BlockTable table) {}

    private static final class Store {
        private final Work work;
        private final List<BlockWriter> writers;
        private @Nullable Sealed whenSealed;

        Store(Work work, List<BlockWriter> writers) {
            this.work = work;
            this.writers = writers;
        }
    }

    /// Hears how many blocks of a store can be found now, or will be once those before them can.
    @FunctionalInterface
    interface Sealed {

        /// All blocks of it were sealed, or dropped.
        void sealed(int blocks);
    }

    /// @param longestEventNanos how long an event is waited for where the driver does not queue copies
    Transfers(DeviceDriver driver, PieceWay way, long longestEventNanos) {
        this.driver = driver;
        this.way = way;
        this.longestEventNanos = longestEventNanos;
        try {
            in = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            out = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            loaded = holdings.register(driver.ipc().createSharedEvent(), DeviceEvent::close);
            stored = holdings.register(driver.ipc().createSharedEvent(), DeviceEvent::close);
        } catch (DeviceException refused) {
            throw holdings.releaseAfter(refused);
        }
    }

    /// Reached when all is in its pages that was begun to be loaded.
    DeviceEvent loaded() {
        return loaded;
    }

    /// Reached when all pages were read that were begun to be stored.
    DeviceEvent stored() {
        return stored;
    }

    /// Gets ready for copies of a pool.
    ///
    /// @throws DeviceException when the device is of no use
    void prepare(EnginePool pool) {
        way.prepare(pool.layout());
    }

    /// Copies blocks of a table to pages.
    ///
    /// @param table becomes this one's, whatever happens
    /// @param pages of each block, checked
    /// @param after the pages are free, or null when they are already
    /// @throws IllegalArgumentException when that is not reached in time; nothing is begun then
    void load(EnginePool pool, BlockTable table, int[][] pages, @Nullable DeviceEvent after) {
        Work work = new Work(openEvent(after, table::close));
        loads.add(new Load(work, table));
        CopyBatch batch = CopyBatch.toDevice();
        List<MemorySegment> blocks = new ArrayList<>();
        for (int block = 0; block < pages.length; block++) {
            blocks.add(table.segment(table.firstBlock() + block));
            for (int layer = 0; layer < pool.layout().layers().size(); layer++) {
                pool.pages().onboard(blocks.getLast(), pages[block], layer, batch);
            }
        }
        StagingRoom room = way.room(pool.layout(), batch);
        if (room == null) {
            copy(in, batch, after);
        } else {
            work.room = room;
            room.load(in, pool.layout(), blocks, List.of(pages), after);
        }
        tell(in, work, loaded);
    }

    /// Whether another store may begin.
    boolean mayStore() {
        return stores.size() < MOST_STORES;
    }

    /// Copies pages to where blocks are being written.
    ///
    /// @param writers become this one's, whatever happens; of those that reserved nothing, nothing is copied
    /// @param after the pages are filled, or null when they are already
    /// @return the number of the store
    /// @throws IllegalArgumentException when that is not reached in time; nothing is begun then
    int store(EnginePool pool, List<BlockWriter> writers, int[][] pages, @Nullable DeviceEvent after) {
        Work work = new Work(openEvent(after, () -> writers.forEach(BlockWriter::close)));
        int number = nextStore++;
        stores.put(number, new Store(work, writers));
        CopyBatch batch = CopyBatch.toHost();
        List<MemorySegment> blocks = new ArrayList<>();
        List<int[]> pagesOf = new ArrayList<>();
        for (int block = 0; block < writers.size(); block++) {
            BlockWriter writer = writers.get(block);
            if (!writes(writer)) {
                continue;
            }
            blocks.add(writer.segment());
            pagesOf.add(pages[block]);
            for (int layer = 0; layer < pool.layout().layers().size(); layer++) {
                pool.pages().offload(pages[block], blocks.getLast(), layer, batch);
            }
        }
        StagingRoom room = way.room(pool.layout(), batch);
        if (room == null) {
            copy(out, batch, after);
        } else {
            work.room = room;
            room.store(out, pool.layout(), blocks, pagesOf, after);
        }
        tell(out, work, stored);
        return number;
    }

    /// The event behind a copy that may be queued now; when there is none to be had, what the copy is of is
    /// given back.
    private DeviceEvent openEvent(@Nullable DeviceEvent after, Runnable giveBack) {
        try {
            if (!way.queued() && after != null && !after.await(longestEventNanos)) {
                throw new IllegalArgumentException("its event was not reached in %d ms, and a copy cannot wait for it"
                                .formatted(TimeUnit.NANOSECONDS.toMillis(longestEventNanos))
                        + " as this host's memory is not registered with the device; wait for it before you ask");
            }
            return driver.openEvent();
        } catch (DeviceException | IllegalArgumentException refused) {
            giveBack.run();
            throw refused;
        }
    }

    private static boolean writes(BlockWriter writer) {
        return writer.outcome() == PutOutcome.RESERVED;
    }

    private void copy(DeviceStream stream, CopyBatch batch, @Nullable DeviceEvent after) {
        if (way.queued() && after != null) {
            stream.waitFor(after);
        }
        if (batch.pieces() > 0) {
            stream.copy(batch);
        }
    }

    private static void tell(DeviceStream stream, Work work, DeviceEvent told) {
        stream.record(work.on);
        stream.record(told);
    }

    /// Has a store's blocks findable once their bytes are there.
    ///
    /// @throws IllegalArgumentException when there is no such store, or it was said of it before
    void seal(int store, Sealed then) {
        Store wanted = stores.get(store);
        if (wanted == null || wanted.whenSealed != null) {
            throw new IllegalArgumentException("store " + store + " is not one that waits to be sealed");
        }
        wanted.whenSealed = then;
    }

    /// Ends what has arrived.
    void poll() {
        while (!loads.isEmpty() && loads.getFirst().work.reached()) {
            Load load = loads.remove();
            load.work.on.close();
            load.table.close();
        }
        for (Map.Entry<Integer, Store> each : List.copyOf(stores.entrySet())) {
            Store store = each.getValue();
            Sealed then = store.whenSealed;
            boolean asked = then != null || store.work.room != null;
            if (asked && store.work.reached() && then != null) {
                stores.remove(each.getKey());
                store.work.on.close();
                then.sealed(seal(store.writers));
            }
        }
    }

    private static int seal(List<BlockWriter> writers) {
        int sealed = 0;
        for (BlockWriter writer : writers) {
            if (writes(writer) && writer.seal() != SealOutcome.DROPPED) {
                sealed++;
            }
            writer.close();
        }
        return sealed;
    }

    /// Whether [#poll] may have something to end soon.
    boolean busy() {
        return !loads.isEmpty() || stores.values().stream().anyMatch(store -> store.whenSealed != null);
    }

    /// Waits until the device does nothing for us any more. A question that is refused is asked
    /// again.
    ///
    /// @return whether it does, or is gone
    boolean drain(long timeoutNanos) {
        long since = System.nanoTime();
        while (!quiet()) {
            if (System.nanoTime() - since > timeoutNanos) {
                return false;
            }
            LockSupport.parkNanos(this, DeviceEvent.POLL_NANOS);
        }
        return true;
    }

    private boolean quiet() {
        try {
            return in.isIdle() && out.isIdle();
        } catch (DeviceException failed) {
            return failed.error().isFatal();
        }
    }

    /// Gives back what blocks are pinned or reserved for copies that are over, or never will be.
    void abandon() {
        loads.forEach(load -> load.table.close());
        loads.clear();
        List<BlockWriter> writers = new ArrayList<>();
        stores.values().forEach(store -> writers.addAll(store.writers));
        stores.clear();
        writers.forEach(BlockWriter::close);
    }

    /// Gives events and streams back, also those of copies that nobody has asked after.
    ///
    /// @throws DeviceException the first that the device refused
    void close() {
        loads.forEach(load -> holdings.register(load.work.on, DeviceEvent::close));
        stores.values().forEach(store -> holdings.register(store.work.on, DeviceEvent::close));
        holdings.register(way::close);
        holdings.releaseAll();
    }
}
