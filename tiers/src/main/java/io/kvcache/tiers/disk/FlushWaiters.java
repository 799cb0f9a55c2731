package io.kvcache.tiers.disk;

import java.util.ArrayList;
import java.util.List;

/// Waits until what was appended is written, and what only a trailer finds has its trailer, then syncs.
final class FlushWaiters {

    /// A group that failed hides the heads behind it, so all groups that were begun before must have ended,
    /// whoever's they are.
    private static final class Waiter {
        final long appends;
        final LogIo.SyncCallback callback;
        long groups = UNKNOWN;

        Waiter(long appends, LogIo.SyncCallback callback) {
            this.appends = appends;
            this.callback = callback;
        }
    }

    private static final long UNKNOWN = -1;

    private final LogIo io;
    private final BatchWriter writer;
    private final TrailerWriter trailerWriter;
    private final List<Waiter> waiting = new ArrayList<>();

    FlushWaiters(LogIo io, BatchWriter writer, TrailerWriter trailerWriter) {
        this.io = io;
        this.writer = writer;
        this.trailerWriter = trailerWriter;
    }

    /// Makes durable, findable after a crash, all that was appended by now.
    void flushAppended(LogIo.SyncCallback callback) {
        waiting.add(new Waiter(writer.acceptedAppends(), callback));
    }

    /// Makes durable, findable after a crash, all that has been written by now.
    void written(LogIo.SyncCallback callback) {
        waiting.add(new Waiter(0, callback));
    }

    boolean isIdle() {
        return waiting.isEmpty();
    }

    /// Nobody waits for another's turn: what reclaiming waits for makes the room that a caller's flush may
    /// wait for.
    void pump() {
        List<Waiter> ready = new ArrayList<>();
        for (Waiter each : waiting) {
            if (io.logHealth().isWritingHalted() || (written(each) && !trailerWriter.hasBrokenRegion())) {
                ready.add(each);
            }
        }
        waiting.removeAll(ready);
        for (Waiter each : ready) {
            sync(each);
        }
    }

    /// Syncs, and leaves word of how much is durable, so that an opening can tell when some of it is missing.
    private void sync(Waiter flush) {
        BatchWriter.Mark mark = writer.writtenMark();
        io.sync(durable -> {
            if (durable && mark != null) {
                writer.writeDurableMark(mark, () -> flush.callback.onSynced(true));
            } else {
                flush.callback.onSynced(durable);
            }
        });
    }

    private boolean written(Waiter next) {
        if (next.groups == UNKNOWN && writer.begunAppends() >= next.appends) {
            next.groups = writer.begunBatches();
        }
        return next.groups != UNKNOWN && writer.endedBatches() >= next.groups;
    }
}
