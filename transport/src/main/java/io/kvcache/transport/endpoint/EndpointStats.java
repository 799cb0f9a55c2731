package io.kvcache.transport.endpoint;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.wire.MessageType;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;

/// Statistics of an endpoint since it was opened.
///
/// @param connections open now
/// @param sessions open now
/// @param sessionsBegun ever
/// @param sessionsExpired that ended because their clients were not heard of
/// @param leases on tables and views
/// @param reservations of room
/// @param waiting requests that wait for something now
/// @param requests of all kinds
/// @param refusals replies that were not OK
/// @param corrupt payloads that did not have their checksum
/// @param wrongProofs handshakes rejected for a wrong secret
/// @param unseenProofs handshakes rejected without a check, after too many wrong ones from the same source
/// @param bytesIn of payloads received
/// @param bytesStaged copied out of staging memory that clients had written, and out of their regions
/// @param bytesOut of payloads sent, and copied into clients' regions
/// @param bytesSaved that coding has kept off the network, beside those
/// @param closed connections, by reason
@SuppressWarnings("exports") // Reasons have names.
public record EndpointStats(
        int connections,
        int sessions,
        long sessionsBegun,
        long sessionsExpired,
        HandleCounts leases,
        HandleCounts reservations,
        int waiting,
        long requests,
        long refusals,
        long corrupt,
        long wrongProofs,
        long unseenProofs,
        long bytesIn,
        long bytesStaged,
        long bytesOut,
        long bytesSaved,
        Map<DisconnectReason, Long> closed) {

    public EndpointStats {
        closed = Map.copyOf(closed);
    }

    /// Returns the sums of this endpoint and another one.
    public EndpointStats plus(EndpointStats other) {
        Map<DisconnectReason, Long> both = new EnumMap<>(DisconnectReason.class);
        both.putAll(closed);
        other.closed.forEach((reason, count) -> both.merge(reason, count, Long::sum));
        return new EndpointStats(
                connections + other.connections,
                sessions + other.sessions,
                sessionsBegun + other.sessionsBegun,
                sessionsExpired + other.sessionsExpired,
                leases.plus(other.leases),
                reservations.plus(other.reservations),
                waiting + other.waiting,
                requests + other.requests,
                refusals + other.refusals,
                corrupt + other.corrupt,
                wrongProofs + other.wrongProofs,
                unseenProofs + other.unseenProofs,
                bytesIn + other.bytesIn,
                bytesStaged + other.bytesStaged,
                bytesOut + other.bytesOut,
                bytesSaved + other.bytesSaved,
                both);
    }

    /// Counts of leases or reservations that clients hold.
    ///
    /// @param granted since the start
    /// @param ended released by their clients, or used up
    /// @param expired taken back, because the client's connection or lease had ended
    public record HandleCounts(long granted, long ended, long expired) {

        /// Returns the number held now.
        public long open() {
            return granted - ended - expired;
        }

        private HandleCounts plus(HandleCounts other) {
            return new HandleCounts(granted + other.granted, ended + other.ended, expired + other.expired);
        }
    }

    /// The counters behind [EndpointStats]. Any thread.
    static final class Counters {

        /// Requests that find, move or drop blocks and objects.
        private static final Set<MessageType> TIMED = Collections.unmodifiableSet(EnumSet.of(
                MessageType.MATCH,
                MessageType.ACQUIRE,
                MessageType.READ,
                MessageType.READ_RANGE,
                MessageType.COPY,
                MessageType.DROP_CHAIN,
                MessageType.DROP_NAMESPACE,
                MessageType.RESERVE,
                MessageType.RESERVE_OBJECT,
                MessageType.FILL,
                MessageType.FILL_STAGED,
                MessageType.PUT,
                MessageType.PUT_STAGED,
                MessageType.PUT_OBJECT,
                MessageType.PUT_OBJECT_STAGED,
                MessageType.GET_OBJECT,
                MessageType.CONTAINS_OBJECT,
                MessageType.MATCH_OBJECTS,
                MessageType.DROP_OBJECT,
                MessageType.DROP_OBJECTS));

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
        final LongAdder bytesSaved = new LongAdder();
        private final Map<DisconnectReason, LongAdder> closed = new EnumMap<>(DisconnectReason.class);
        private final EndpointListener listener;

        /// @param listener hears how long requests take
        Counters(EndpointListener listener) {
            this.listener = listener;
            for (DisconnectReason reason : DisconnectReason.values()) {
                closed.put(reason, new LongAdder());
            }
        }

        /// Notes that a request was answered. One that waits for news, or is about the session, does not count as load.
        void onAnswered(MessageType type, long beganNanos) {
            if (TIMED.contains(type)) {
                listener.onAnswered(type, System.nanoTime() - beganNanos);
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
                    bytesSaved.sum(),
                    reasons);
        }

        /// Counters of one kind of handle.
        static final class HandleCounters {

            final LongAdder granted = new LongAdder();
            final LongAdder ended = new LongAdder();
            final LongAdder expired = new LongAdder();

            private EndpointStats.HandleCounts read() {
                return new EndpointStats.HandleCounts(granted.sum(), ended.sum(), expired.sum());
            }
        }
    }
}
