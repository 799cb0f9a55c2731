package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.CloseReason;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/// Counts what [EndpointStats] tells. Any thread.
final class Counters {

    final LongAdder sessionsBegun = new LongAdder();
    final LongAdder sessionsExpired = new LongAdder();
    final ClaimCounters leases = new ClaimCounters();
    final ClaimCounters reservations = new ClaimCounters();
    final LongAdder waiting = new LongAdder();
    final LongAdder requests = new LongAdder();
    final LongAdder refusals = new LongAdder();
    final LongAdder corrupt = new LongAdder();
    final LongAdder wrongProofs = new LongAdder();
    final LongAdder unseenProofs = new LongAdder();
    final LongAdder bytesIn = new LongAdder();
    final LongAdder bytesStaged = new LongAdder();
    final LongAdder bytesOut = new LongAdder();
    private final Map<CloseReason, LongAdder> closed = new EnumMap<>(CloseReason.class);

    Counters() {
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason, new LongAdder());
        }
    }

    void closed(CloseReason reason) {
        closed.getOrDefault(reason, new LongAdder()).increment();
    }

    EndpointStats stats(int connections, int sessions) {
        Map<CloseReason, Long> reasons = new EnumMap<>(CloseReason.class);
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
                unseenProofs.sum(),
                bytesIn.sum(),
                bytesStaged.sum(),
                bytesOut.sum(),
                reasons);
    }

    /// Of one kind of claim.
    static final class ClaimCounters {

        final LongAdder granted = new LongAdder();
        final LongAdder ended = new LongAdder();
        final LongAdder expired = new LongAdder();

        private EndpointStats.Claims read() {
            return new EndpointStats.Claims(granted.sum(), ended.sum(), expired.sum());
        }
    }
}
