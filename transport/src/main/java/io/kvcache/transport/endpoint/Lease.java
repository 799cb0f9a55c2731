package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A table or a view that is held open for a client. It is closed when the lease has ended and the last send from
/// it is over.
final class Lease {

    private static final long MAX_END_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final @Nullable BlockTable table;
    private final @Nullable ObjectView view;
    private int users;
    private boolean ended;
    private boolean closed;

    private Lease(@Nullable BlockTable table, @Nullable ObjectView view) {
        this.table = table;
        this.view = view;
    }

    static Lease of(BlockTable table) {
        return new Lease(table, null);
    }

    static Lease of(ObjectView view) {
        return new Lease(null, view);
    }

    @Nullable
    BlockTable table() {
        return table;
    }

    @Nullable
    ObjectView view() {
        return view;
    }

    /// Returns whether blocks are still expected.
    boolean isLoading() {
        if (table == null || !enter()) {
            return false;
        }
        try {
            return table.readyBlocks() < table.blocks();
        } finally {
            leave();
        }
    }

    /// Keeps it open until [#leave]; answers false when it has ended.
    synchronized boolean enter() {
        if (ended) {
            return false;
        }
        users++;
        return true;
    }

    void leave() {
        boolean last;
        synchronized (this) {
            users--;
            last = ended && users == 0;
        }
        if (last) {
            release();
            synchronized (this) {
                closed = true;
                notifyAll();
            }
        }
    }

    /// Ends it. Waits for a send that is almost done, but not for long, so that the client's next request finds the
    /// lease gone.
    void end() {
        boolean last;
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            last = users == 0;
            if (!last) {
                awaitUsers();
            }
        }
        if (last) {
            release();
        }
    }

    private void awaitUsers() {
        long until = System.nanoTime() + MAX_END_WAIT_NANOS;
        try {
            for (long left = MAX_END_WAIT_NANOS; !closed && left > 0; left = until - System.nanoTime()) {
                TimeUnit.NANOSECONDS.timedWait(this, left);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private void release() {
        if (table != null) {
            table.close();
        }
        if (view != null) {
            view.close();
        }
    }
}
