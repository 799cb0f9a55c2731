package io.kvcache.transport.client;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Connections that threads wait at, and until when: one whose time is over is closed, which ends the wait.
///
/// After the last tick all waits are over, also those that begin then: none is without an end.
///
/// **Threads.** Any; one ticks.
final class CallTimeouts {

    private final Map<FrameConnection, Long> deadlines = new ConcurrentHashMap<>();
    private volatile boolean stopped;

    /// A thread begins to wait.
    void begin(FrameConnection connection, long nanos) {
        deadlines.put(connection, System.nanoTime() + nanos);
        if (stopped) { // Looked at behind the put, as #end() sets it before it looks for lines: one of them sees the
            // other.
            connection.close(DisconnectReason.SHUTDOWN);
        }
    }

    /// Ticks have ended.
    void end() {
        stopped = true;
        deadlines.keySet().forEach(connection -> connection.close(DisconnectReason.SHUTDOWN));
    }

    /// The wait is over.
    void end(FrameConnection connection) {
        deadlines.remove(connection);
    }

    /// Returns whether a call is waiting.
    boolean hasPending() {
        return !deadlines.isEmpty();
    }

    void closeExpired() {
        long now = System.nanoTime();
        deadlines.forEach((connection, end) -> {
            if (end - now < 0 && deadlines.remove(connection, end)) {
                connection.close(DisconnectReason.STALLED);
            }
        });
    }
}
