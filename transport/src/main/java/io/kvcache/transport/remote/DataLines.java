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
        void with(DataLine line) throws CallFailed;
    }

    /// Lends a connection for one use.
    void use(Use use) throws CallFailed {
        acquirePermit();
        try {
            DataLine line = idle.pollFirst();
            if (line == null || !line.open()) {
                line = open();
            }
            use(line, use);
        } finally {
            permits.release();
        }
    }

    private void use(DataLine line, Use use) throws CallFailed {
        boolean good = false;
        try {
            use.with(line);
            good = true;
        } catch (CallFailed failed) {
            good = failed.answered();
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

    private void acquirePermit() throws CallFailed {
        try {
            if (!permits.tryAcquire(options.requestNanos(), TimeUnit.NANOSECONDS)) {
                throw CallFailed.unanswered("all connections are busy");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw CallFailed.unanswered("interrupted");
        }
    }

    private DataLine open() throws CallFailed {
        if (closed) {
            throw CallFailed.unanswered("the session is over");
        }
        try {
            return new DataLine(Handshake.open(connector, options, deadlines, session), deadlines, releases);
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
