package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.Status;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The snapshots that clients are reading in pieces.
///
/// A session reads one at a time. The number over all sessions and the entries of each are limited, for the sake
/// of the heap.
///
/// A snapshot is kept until the client reads its last piece, the session ends or takes another, or the client has
/// not read on within the stall timeout.
///
/// **Threads.** Any.
final class SnapshotCursors {

    private final HeapLimits limits;
    private final long idleNanos;
    private final LongSupplier nanoClock;
    private final Map<ClientSession, SnapshotCursor> cursors = new HashMap<>();
    private int inCreation;
    private long last;

    /// @param usedNanos when it was read last
    private record SnapshotCursor(long number, StoreSnapshot snapshot, long usedNanos) {}

    /// A snapshot, and the number by which it is asked for again.
    record NumberedSnapshot(long number, StoreSnapshot snapshot) {}

    SnapshotCursors(EndpointOptions options, LongSupplier nanoClock) {
        limits = options.limits().heap();
        idleNanos = options.timeouts().stall().toNanos();
        this.nanoClock = nanoClock;
    }

    /// Takes a snapshot of a store and keeps it. It replaces the session's previous one.
    ///
    /// @throws RequestException when clients are reading too many snapshots, or this one would be too large
    NumberedSnapshot open(ClientSession session, KvCache cache) throws RequestException {
        long entries = cache.stats().records().live();
        if (entries > limits.snapshotEntries()) {
            throw new RequestException(
                    Status.FAILED,
                    "a snapshot would have %s entries; allowed: %s".formatted(entries, limits.snapshotEntries()));
        }
        begin(session);
        boolean made = false;
        try {
            StoreSnapshot snapshot = cache.events().snapshot();
            made = true;
            return new NumberedSnapshot(addCursor(session, snapshot), snapshot);
        } finally {
            if (!made) {
                cancelBegun();
            }
        }
    }

    private synchronized void begin(ClientSession session) throws RequestException {
        cursors.remove(session);
        if (cursors.size() + inCreation >= limits.snapshots()) {
            throw new RequestException(
                    Status.BUSY,
                    "%s snapshots are being read; allowed: %1$s; try again later".formatted(limits.snapshots()));
        }
        inCreation++;
    }

    private synchronized long addCursor(ClientSession session, StoreSnapshot snapshot) {
        inCreation--;
        last++;
        if (!session.isClosed()) {
            cursors.put(session, new SnapshotCursor(last, snapshot, nanoClock.getAsLong()));
        }
        return last;
    }

    private synchronized void cancelBegun() {
        inCreation--;
    }

    /// Returns the snapshot with this number, if the session still has it.
    synchronized @Nullable StoreSnapshot find(ClientSession session, long number) {
        SnapshotCursor found = cursors.get(session);
        if (found == null || found.number != number) {
            return null;
        }
        cursors.put(session, new SnapshotCursor(number, found.snapshot, nanoClock.getAsLong()));
        return found.snapshot;
    }

    /// Releases a snapshot of which the client has read the last piece.
    synchronized void finish(ClientSession session, long number) {
        SnapshotCursor found = cursors.get(session);
        if (found != null && found.number == number) {
            cursors.remove(session);
        }
    }

    /// Releases the snapshots of ended sessions and of clients that have stalled.
    synchronized void expireIdle(long nowNanos) {
        cursors.entrySet()
                .removeIf(each -> each.getKey().isClosed() || nowNanos - each.getValue().usedNanos > idleNanos);
    }

    /// Releases all snapshots.
    synchronized void close() {
        cursors.clear();
    }
}
