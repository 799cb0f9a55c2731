package io.kvcache.transport.remote;

import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameConnection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Connections that somebody waits at, and until when: one whose time is over is closed, which ends the
/// wait.
///
/// When nobody ticks any more all waits are over, also those that begin then: none is without an
/// end.
///
/// **Threads.** Any; one ticks.
final class Deadlines {

    private final Map<FrameConnection, Long> until = new ConcurrentHashMap<>();
    private volatile boolean over;

    /// Somebody begins to wait.
    void begin(FrameConnection line, long nanos) {
        until.put(line, System.nanoTime() + nanos);
        if (over) { // Looked at behind the put, as #end() sets it before it looks for lines: one of them sees the
            // other.
            line.close(DisconnectReason.SHUTDOWN);
        }
    }

    /// Nobody ticks any more.
    void end() {
        over = true;
        until.keySet().forEach(line -> line.close(DisconnectReason.SHUTDOWN));
    }

    /// Nobody waits any more.
    void end(FrameConnection line) {
        until.remove(line);
    }

    /// Whether somebody waits.
    boolean any() {
        return !until.isEmpty();
    }

    void tick() {
        long now = System.nanoTime();
        until.forEach((line, end) -> {
            if (end - now < 0 && until.remove(line, end)) {
                line.close(DisconnectReason.STALLED);
            }
        });
    }
}
