package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.DisconnectReason;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/// Counts what [EndpointStats] tells. Any thread.
final class EndpointCounters {

    final LongAdder sessionsBegun = new LongAdder();
    final LongAdder sessionsExpired = new LongAdder();
    final HandleCounters leases = new HandleCounters();
    final HandleCounters reservations = new HandleCounters();
    final LongAdder waiting = new LongAdder();
    final LongAdder requests = new LongAdder();
    final LongAdder refusals = new LongAdder();
    final LongAdder corrupt = new LongAdder();
    final LongAdder wrongProofs = new LongAdder();
    final LongAdder throttledProofs = new LongAdder();
    final LongAdder bytesIn = new LongAdder();
    final LongAdder bytesStaged = new LongAdder();
    final LongAdder bytesOut = new LongAdder();
    private final Map<DisconnectReason, LongAdder> closed = new EnumMap<>(DisconnectReason.class);

    EndpointCounters() {
        for (DisconnectReason reason : DisconnectReason.values()) {
            closed.put(reason, new LongAdder());
        }
    }

    void countClosed(DisconnectReason reason) {
        closed.getOrDefault(reason, new LongAdder()).increment();
    }

    EndpointStats stats(int connections, int sessions) {
        Map<DisconnectReason, Long> reasons = new EnumMap<>(DisconnectReason.class);
        closed.forEach((reason, count) -> reasons.put(reason, count.sum()));
        return new EndpointStats(
                connections,
                sessions,
                sessionsBegun.sum(),
                sessionsExpired.sum(),
                leases.read(),
                reservations.read(),
                waiting.intValue(),
                requests.sum(),
                refusals.sum(),
                corrupt.sum(),
                wrongProofs.sum(),
                throttledProofs.sum(),
                bytesIn.sum(),
                bytesStaged.sum(),
                bytesOut.sum(),
                reasons);
    }

    /// Of one kind of claim.
    static final class HandleCounters {

        final LongAdder granted = new LongAdder();
        final LongAdder ended = new LongAdder();
        final LongAdder expired = new LongAdder();

        private EndpointStats.HandleCounts read() {
            return new EndpointStats.HandleCounts(granted.sum(), ended.sum(), expired.sum());
        }
    }
}
