package io.kvcache.transport.client;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Deadlines of threads that wait at connections. When a deadline has passed, its connection is closed, which ends
/// the wait. After the last tick all waits end, also later ones, so none is endless.
///
/// **Threads.** Any; one ticks.
final class CallTimeouts {

    private final Map<FrameConnection, Long> deadlines = new ConcurrentHashMap<>();
    private volatile boolean stopped;

    /// Notes that the calling thread begins to wait.
    void begin(FrameConnection connection, long nanos) {
        deadlines.put(connection, System.nanoTime() + nanos);
        if (stopped) { // Looked at behind the put, as #end() sets it before it looks for lines: one of them sees the
            // other.
            connection.close(DisconnectReason.SHUTDOWN);
        }
    }

    /// Ends all waits, as no more ticks will come.
    void end() {
        stopped = true;
        deadlines.keySet().forEach(connection -> connection.close(DisconnectReason.SHUTDOWN));
    }

    /// Notes that the wait has ended.
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
