package io.kvcache.server.event;

import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Makes snapshots of all that is stored, as far as the heap can hold them: few at one time, and none that would
/// take too much of it.
///
/// **Threads.** Any.
public final class SnapshotLimiter {

    /// Snapshots that are being made or sent at one time.
    static final int MAX_CONCURRENT = 2;

    /// Heap that an entry takes while a snapshot is made.
    private static final long ENTRY_BYTES = 250;

    /// One snapshot may take this fraction of the heap.
    private static final long HEAP_FRACTION = 8;

    private final EventStream events;
    private final LongSupplier entries;
    private final long maxEntries;
    private final Semaphore permits = new Semaphore(MAX_CONCURRENT);

    /// @param entries about how many there would be in a snapshot now
    public SnapshotLimiter(EventStream events, LongSupplier entries) {
        this(events, entries, Runtime.getRuntime().maxMemory() / HEAP_FRACTION / ENTRY_BYTES);
    }

    SnapshotLimiter(EventStream events, LongSupplier entries, long mostEntries) {
        this.events = events;
        this.entries = entries;
        this.maxEntries = mostEntries;
    }

    /// Why none can be made now, or null when one can: then [#release] is called once it is not held any longer.
    public @Nullable String tryAcquire() {
        long now = entries.getAsLong();
        if (now > maxEntries) {
            return "a snapshot would take " + now + " entries; with this heap it may take " + maxEntries;
        }
        return permits.tryAcquire()
                ? null
                : MAX_CONCURRENT + " snapshots are being sent, the most at one time; try again later";
    }

    /// It is not held any longer.
    public void release() {
        permits.release();
    }

    /// All that is stored. Takes the store's lock again and again; not for an event loop.
    public StoreSnapshot createSnapshot() {
        return events.snapshot();
    }
}
