package io.kvcache.server.net;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.net.Connection.ClientAddress;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.channel.Channel;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// All connections of a server: how many there may be, which of them stall, why they ended.
///
/// **Threads.** Any; [#tick] one at a time.
@SuppressWarnings("ReferenceEquality") // a gate is itself alone
public final class ConnectionRegistry {

    /// Connections beyond the limit that may ask how the server is.
    static final int HEALTH_CHECK_SLOTS = 64;

    /// This fraction of all places is reserved for listeners.
    private static final int RESERVED_FRACTION = 4;

    /// This fraction of all connections may be closed at once for new ones.
    private static final int EVICTION_FRACTION = 64;

    /// After a look at all connections none of which could give way.
    private static final long SCAN_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final NetLimits limits;
    private final Clock clock;
    private final RequestTimer timer;
    private final SlowRequestLog slow;
    private final LongSupplier throttledReads;
    private long throttledBefore;
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();
    private final List<ListenerSlots> listeners = new ArrayList<>();
    private final SequencedSet<Connection> overLimit = new LinkedHashSet<>();
    private boolean lastScanFailed;
    private long lastScanNanos;
    private final AtomicLong accepted = new AtomicLong();
    private final Map<CloseReason, LongAdder> closed = new EnumMap<>(CloseReason.class);
    private volatile String lastTlsFailure = "";
    private volatile boolean shutdownAnnounced;
    private volatile boolean draining;

    /// @param timer told of every request
    /// @param slow what logs those that take long
    /// @param refusedReads reads so far that found nothing because others hold what is being sent
    public ConnectionRegistry(
            NetLimits limits, Clock clock, RequestTimer timer, SlowRequestLog slow, LongSupplier refusedReads) {
        this.timer = timer;
        this.slow = slow;
        this.throttledReads = refusedReads;
        this.limits = limits;
        this.clock = clock;
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason, new LongAdder());
        }
    }

    /// The connections of one listener: some places are kept for each, so that a full listener does not close the
    /// others.
    public final class ListenerSlots {

        private final boolean requiresAuth;
        private int used;

        private ListenerSlots(boolean asks) {
            this.requiresAuth = asks;
        }

        private int aboveReserved() {
            return Math.max(0, used - reservedPerListener());
        }
    }

    /// Opens one more listener.
    ///
    /// @param asks whether clients must authenticate there
    public ListenerSlots addListener(boolean asks) {
        ListenerSlots listenerSlots = new ListenerSlots(asks);
        synchronized (listeners) {
            listeners.add(listenerSlots);
        }
        return listenerSlots;
    }

    /// Places that are kept for each listener: a quarter of all places, in equal parts.
    private int reservedPerListener() {
        return Math.max(1, limits.connections() / RESERVED_FRACTION / listeners.size());
    }

    private boolean hasFreeSlot(ListenerSlots listenerSlots) {
        int own = reservedPerListener();
        int beyond = listeners.stream().mapToInt(ListenerSlots::aboveReserved).sum();
        int all = listeners.stream().mapToInt(each -> each.used).sum();
        boolean common = listeners.size() == 1 || beyond < limits.connections() - (long) own * listeners.size();
        return all < limits.connections() && (listenerSlots.used < own || common);
    }

    /// Takes a new connection in, or answers null when the server goes down. When all places are taken another
    /// connection gives way. Where none does, the new one may ask for the server's health and nothing else, and
    /// takes one of a few places for that.
    @Nullable
    Connection accept(Channel channel, ListenerSlots listenerSlots) {
        long id = accepted.incrementAndGet();
        if (draining) {
            countClosed(CloseReason.DRAIN);
            return null;
        }
        String address = ClientAddress.of(channel.remoteAddress());
        List<Connection> leave = new ArrayList<>();
        Connection connection;
        synchronized (listeners) {
            if (!hasFreeSlot(listenerSlots)) {
                leave.addAll(selectEvictable(listenerSlots, address));
                leave.forEach(this::onEvicted);
            }
            boolean spare = !hasFreeSlot(listenerSlots);
            if (spare && overLimit.size() == HEALTH_CHECK_SLOTS) {
                Connection oldest = overLimit.removeFirst();
                open.remove(oldest);
                countClosed(CloseReason.TOO_MANY);
                leave.add(oldest);
            }
            connection = new Connection(
                    id,
                    channel,
                    this,
                    new Connection.AcceptInfo(listenerSlots, address, spare, !listenerSlots.requiresAuth));
            open.add(connection);
            if (spare) {
                overLimit.add(connection);
            } else {
                listenerSlots.used++;
            }
        }
        leave.forEach(each -> each.close(each.acceptInfo().overLimit() ? CloseReason.TOO_MANY : CloseReason.GAVE_WAY));
        return connection;
    }

    /// The connections that give way to one of an address, several at once so that a flood does not have all
    /// looked at again for each: of the address that has most, if it has no fewer than the new one's, those that
    /// were never asked anything before others, the longest idle first.
    private List<Connection> selectEvictable(ListenerSlots listenerSlots, String address) {
        long now = clock.nanos();
        if (now - lastScanNanos < SCAN_INTERVAL_NANOS && lastScanFailed) {
            return List.of();
        }
        lastScanNanos = now;
        Map<String, Integer> held = new HashMap<>();
        open.forEach(each ->
                held.merge(each.acceptInfo().address(), each.acceptInfo().overLimit() ? 0 : 1, Integer::sum));
        int own = held.getOrDefault(address, 0);
        boolean others = listenerSlots.aboveReserved() > 0 || listenerSlots.used < reservedPerListener();
        List<Connection> found = open.stream()
                .filter(each -> !each.acceptInfo().overLimit()
                        && (others || each.acceptInfo().listenerSlots() == listenerSlots))
                .filter(each ->
                        held.getOrDefault(each.acceptInfo().address(), 0) >= own && each.isEvictable(limits, now))
                .sorted(Comparator.comparingInt((Connection each) ->
                                held.getOrDefault(each.acceptInfo().address(), 0))
                        .reversed()
                        .thenComparing(each -> each.requestCount() > 0)
                        .thenComparingLong(Connection::lastReadNanos)
                        .thenComparingLong(Connection::id))
                .limit(Math.max(1, limits.connections() / EVICTION_FRACTION))
                .toList();
        lastScanFailed = found.isEmpty();
        return found;
    }

    /// Counts a client that was not taken in.
    void countRejected(CloseReason reason) {
        accepted.incrementAndGet();
        countClosed(reason);
    }

    /// It gives way; the lock is held.
    private void onEvicted(Connection connection) {
        if (open.remove(connection)) {
            connection.acceptInfo().listenerSlots().used--;
            countClosed(CloseReason.GAVE_WAY);
        }
    }

    void onClosed(Connection connection) {
        synchronized (listeners) {
            if (!open.remove(connection)) {
                return;
            }
            if (!overLimit.remove(connection)) {
                connection.acceptInfo().listenerSlots().used--;
            }
        }
        countClosed(connection.reason());
    }

    private void countClosed(CloseReason reason) {
        LongAdder adder = closed.get(reason);
        if (adder != null) {
            adder.increment();
        }
    }

    /// Keeps the listener's address and the reason of a failed TLS handshake, for the log.
    void recordTlsFailure(String failure) {
        lastTlsFailure = failure;
    }

    /// Returns the listener's address and the reason of the last failed TLS handshake; empty before the first.
    public String lastTlsFailure() {
        return lastTlsFailure;
    }

    RequestTimer timer() {
        return timer;
    }

    SlowRequestLog slowRequestLog() {
        return slow;
    }

    Clock clock() {
        return clock;
    }

    /// Closes connections that have stalled or idled too long.
    public void tick() {
        long now = clock.nanos();
        long refused = throttledReads.getAsLong();
        boolean pressed = refused != throttledBefore;
        throttledBefore = refused;
        for (Connection connection : open) {
            connection.enforceLimits(limits, now, pressed);
        }
    }

    /// Takes new connections still, but says that it will not for long.
    public void announceShutdown() {
        shutdownAnnounced = true;
    }

    /// Returns whether clients should use another server.
    public boolean isShutdownAnnounced() {
        return shutdownAnnounced || draining;
    }

    /// Takes no new connections; closes each as soon as its request is answered.
    public void drain() {
        draining = true;
        open.forEach(Connection::drain);
    }

    /// Returns whether new connections are refused.
    public boolean isDraining() {
        return draining;
    }

    /// Closes all connections that are still open.
    public void closeAll(CloseReason reason) {
        open.forEach(connection -> connection.close(reason));
    }

    /// Connections that are open now.
    public int openCount() {
        return open.size();
    }

    /// Those that are open now, in the order in which they came.
    public List<Connection> openConnections() {
        return open.stream().sorted(Comparator.comparingLong(Connection::id)).toList();
    }

    /// Connections accepted since the start, refused ones included.
    public long acceptedCount() {
        return accepted.get();
    }

    /// Connections that ended for a reason.
    public long closedCount(CloseReason reason) {
        LongAdder adder = closed.get(reason);
        return adder == null ? 0 : adder.sum();
    }

    public NetLimits limits() {
        return limits;
    }

    /// Is told how long each request took.
    ///
    /// **Threads.** Any.
    public interface RequestTimer {

        /// Takes no notice.
        RequestTimer NONE = (_, _, _) -> {};

        /// A request was answered.
        ///
        /// @param verb what it asked for, one of few
        /// @param nanos from its first byte until its reply was handed to the network; so the time that the
        ///     client took to send a value is in it, the time it takes to read one is not
        void recordRequest(ProtocolKind protocol, String verb, long nanos);
    }
}
