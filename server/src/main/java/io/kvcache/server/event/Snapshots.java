package io.kvcache.server.event;

import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Makes snapshots of all that is stored, as far as the heap can hold them: few at one time, and none that would take
/// too much of it.
///
/// **Threads.** Any.
public final class Snapshots {

    /// Snapshots that are being made or sent at one time.
    static final int AT_ONCE = 2;

    /// What an entry takes while a snapshot is made.
    private static final long ENTRY_BYTES = 250;

    /// Of the heap, one snapshot may take this part.
    private static final long PART = 8;

    private final EventStream events;
    private final LongSupplier entries;
    private final long mostEntries;
    private final Semaphore places = new Semaphore(AT_ONCE);

    /// @param entries about how many there would be in a snapshot now
    public Snapshots(EventStream events, LongSupplier entries) {
        this(events, entries, Runtime.getRuntime().maxMemory() / PART / ENTRY_BYTES);
    }

    Snapshots(EventStream events, LongSupplier entries, long mostEntries) {
        this.events = events;
        this.entries = entries;
        this.mostEntries = mostEntries;
    }

    /// Why none can be made now, or null when one can: then [#leave] is called once it is not held any longer.
    public @Nullable String enter() {
        long now = entries.getAsLong();
        if (now > mostEntries) {
            return "a snapshot would have " + now + " entries; with this heap it may have " + mostEntries;
        }
        return places.tryAcquire() ? null : AT_ONCE + " snapshots are being sent, as many as may be; try again later";
    }

    /// It is not held any longer.
    public void leave() {
        places.release();
    }

    /// All that is stored. Takes the store's lock again and again; not for an event loop.
    public StoreSnapshot make() {
        return events.snapshot();
    }
}
