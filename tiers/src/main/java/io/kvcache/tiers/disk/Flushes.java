package io.kvcache.tiers.disk;

import java.util.ArrayList;
import java.util.List;

/// Waits until what was appended is written, and what only a trailer finds has its trailer, then syncs.
final class Flushes {

    /// A group that failed hides the heads behind it, so all groups that were begun before must have ended,
    /// whoever's they are.
    private static final class Waiting {
        final long appends;
        final Syncs.Done done;
        long groups = UNKNOWN;

        Waiting(long appends, Syncs.Done done) {
            this.appends = appends;
            this.done = done;
        }
    }

    private static final long UNKNOWN = -1;

    private final Io io;
    private final GroupWriter writer;
    private final Closing closing;
    private final List<Waiting> waiting = new ArrayList<>();

    Flushes(Io io, GroupWriter writer, Closing closing) {
        this.io = io;
        this.writer = writer;
        this.closing = closing;
    }

    /// Makes durable, findable after a crash, all that was appended by now.
    void appended(Syncs.Done done) {
        waiting.add(new Waiting(writer.taken(), done));
    }

    /// Makes durable, findable after a crash, all that has been written by now.
    void written(Syncs.Done done) {
        waiting.add(new Waiting(0, done));
    }

    boolean idle() {
        return waiting.isEmpty();
    }

    /// Nobody waits for another's turn: what reclaiming waits for makes the room that a caller's flush may
    /// wait for.
    void pump() {
        List<Waiting> ready = new ArrayList<>();
        for (Waiting each : waiting) {
            if (io.condition().halted() || (written(each) && !closing.broken())) {
                ready.add(each);
            }
        }
        waiting.removeAll(ready);
        for (Waiting each : ready) {
            sync(each);
        }
    }

    /// Syncs, and leaves word of how much is durable, so that an opening can tell when some of it is missing.
    private void sync(Waiting flush) {
        GroupWriter.Mark mark = writer.written();
        io.syncs().request(durable -> {
            if (durable && mark != null) {
                writer.mark(mark, () -> flush.done.done(true));
            } else {
                flush.done.done(durable);
            }
        });
    }

    private boolean written(Waiting next) {
        if (next.groups == UNKNOWN && writer.begunAppends() >= next.appends) {
            next.groups = writer.begunGroups();
        }
        return next.groups != UNKNOWN && writer.endedGroups() >= next.groups;
    }
}
