package io.kvcache.transport.remote;

import io.kvcache.transport.link.Connector;
import io.kvcache.transport.wire.Welcome;
import java.io.IOException;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/// The connections of one session that carry blocks: as many as are allowed, opened when they are first
/// needed, the one used last lent first.
final class DataLines {

    private final Connector connector;
    private final RemoteOptions options;
    private final Deadlines deadlines;
    private final Welcome session;
    private final Releases releases;
    private final Semaphore permits;
    private final ConcurrentLinkedDeque<DataLine> idle = new ConcurrentLinkedDeque<>();
    private volatile boolean closed;

    DataLines(Connector connector, RemoteOptions options, Deadlines deadlines, Releases releases, Welcome session) {
        this.connector = connector;
        this.options = options;
        this.deadlines = deadlines;
        this.releases = releases;
        this.session = session;
        // Not fair: a thread that runs takes the connection that it has just given back, where handing it to the next
        // would leave it idle until that has woken up.
        permits = new Semaphore(options.connections());
    }

    /// Something to do with a connection.
    @FunctionalInterface
    interface Use {

        /// Does it.
        ///
        /// @param patienceNanos what is left of the time that the use may take
        void with(DataLine line, long patienceNanos) throws CallFailed;
    }

    /// Lends a connection for one use. Until one is free, until it is open and until it has answered is no longer
    /// than a request may take, all together.
    void use(Use use) throws CallFailed {
        use(System.nanoTime() + options.requestNanos(), use);
    }

    /// Lends a connection for a use that is over at a moment.
    void use(long untilNanos, Use use) throws CallFailed {
        acquirePermit(untilNanos);
        try {
            DataLine line = idle.pollFirst();
            if (line == null || !line.open()) {
                line = open(left(untilNanos));
            }
            use(line, untilNanos, use);
        } finally {
            permits.release();
        }
    }

    private static long left(long untilNanos) throws CallFailed {
        long left = untilNanos - System.nanoTime();
        if (left <= 0) {
            throw CallFailed.unanswered("no time was left to ask");
        }
        return left;
    }

    private void use(DataLine line, long untilNanos, Use use) throws CallFailed {
        boolean good = true;
        try {
            long left = left(untilNanos);
            good = false; // what ends it from here on, but an answer, ends the connection
            use.with(line, left);
            good = true;
        } catch (CallFailed failed) {
            good |= failed.answered();
            throw failed;
        } finally {
            if (good && line.open()) {
                idle.addFirst(line);
            } else {
                line.close();
            }
            if (closed) {
                close();
            }
        }
    }

    private void acquirePermit(long untilNanos) throws CallFailed {
        try {
            if (!permits.tryAcquire(untilNanos - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                throw CallFailed.unanswered("all connections are busy");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw CallFailed.unanswered("interrupted");
        }
    }

    private DataLine open(long patienceNanos) throws CallFailed {
        if (closed) {
            throw CallFailed.unanswered("the session is over");
        }
        try {
            Handshake.Opened opened =
                    Handshake.open(connector, new Handshake.Means(options, deadlines, session, patienceNanos));
            return new DataLine(opened, deadlines, releases);
        } catch (IOException unreachable) {
            throw CallFailed.unanswered(String.valueOf(unreachable.getMessage()));
        }
    }

    void close() {
        closed = true;
        for (DataLine line = idle.pollFirst(); line != null; line = idle.pollFirst()) {
            line.close();
        }
    }
}
