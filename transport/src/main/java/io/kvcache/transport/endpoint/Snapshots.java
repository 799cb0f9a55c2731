package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.transport.wire.Status;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The snapshots that clients are reading in pieces, one of a session at a time: few over all sessions, and
/// none that would take too much of the heap.
///
/// Each keeps its place until its last piece was read, its session ends or takes another, or nobody has
/// read on for as long as a client may stall.
///
/// **Threads.** Any.
final class Snapshots {

    private final HeapLimits limits;
    private final long idleNanos;
    private final LongSupplier nanoClock;
    private final Map<Session, Kept> kept = new HashMap<>();
    private int making;
    private long last;

    /// @param usedNanos when it was read last
    private record Kept(long number, StoreSnapshot snapshot, long usedNanos) {}

    /// A snapshot, and the number by which it is asked for again.
    record Taken(long number, StoreSnapshot snapshot) {}

    Snapshots(EndpointOptions options, LongSupplier nanoClock) {
        limits = options.most().heap();
        idleNanos = options.times().stall().toNanos();
        this.nanoClock = nanoClock;
    }

    /// Takes one of a store and keeps it; the one that the session had gives way.
    ///
    /// @throws Refused when there is no place or no room for it
    Taken take(Session session, KvCache cache) throws Refused {
        long entries = cache.stats().records().live();
        if (entries > limits.snapshotEntries()) {
            throw new Refused(
                    Status.FAILED,
                    "a snapshot would have %d entries; allowed: %d".formatted(entries, limits.snapshotEntries()));
        }
        begin(session);
        boolean made = false;
        try {
            StoreSnapshot snapshot = cache.events().snapshot();
            made = true;
            return new Taken(keep(session, snapshot), snapshot);
        } finally {
            if (!made) {
                fail();
            }
        }
    }

    private synchronized void begin(Session session) throws Refused {
        kept.remove(session);
        if (kept.size() + making >= limits.snapshots()) {
            throw new Refused(
                    Status.BUSY,
                    "%d snapshots are being read; allowed: %1$d; try again later".formatted(limits.snapshots()));
        }
        making++;
    }

    private synchronized long keep(Session session, StoreSnapshot snapshot) {
        making--;
        last++;
        if (!session.over()) {
            kept.put(session, new Kept(last, snapshot, nanoClock.getAsLong()));
        }
        return last;
    }

    private synchronized void fail() {
        making--;
    }

    /// The snapshot with this number, if the session still has it.
    synchronized @Nullable StoreSnapshot find(Session session, long number) {
        Kept found = kept.get(session);
        if (found == null || found.number != number) {
            return null;
        }
        kept.put(session, new Kept(number, found.snapshot, nanoClock.getAsLong()));
        return found.snapshot;
    }

    /// All of it was read.
    synchronized void done(Session session, long number) {
        Kept found = kept.get(session);
        if (found != null && found.number == number) {
            kept.remove(session);
        }
    }

    /// Lets go of what nobody reads on.
    synchronized void tick(long nowNanos) {
        kept.entrySet().removeIf(each -> each.getKey().over() || nowNanos - each.getValue().usedNanos > idleNanos);
    }

    /// Lets go of all.
    synchronized void close() {
        kept.clear();
    }
}
