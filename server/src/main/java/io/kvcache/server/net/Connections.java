package io.kvcache.server.net;

import io.kvcache.core.Clock;
import io.netty.channel.Channel;
import java.time.Duration;
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
public final class Connections {

    /// Connections beyond the limit that may ask how the server is.
    static final int SPARE_PLACES = 64;

    /// Of all places, this part is kept for listeners.
    private static final int OWN_PART = 4;

    /// Of all connections, this part gives way at once.
    private static final int LEAVING_PART = 64;

    /// After a look at all connections none of which could give way.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final NetLimits limits;
    private final Clock clock;
    private final RequestTimer timer;
    private final SlowRequests slow;
    private final LongSupplier refusedReads;
    private long refusedBefore;
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();
    private final List<Gate> gates = new ArrayList<>();
    private final SequencedSet<Connection> spares = new LinkedHashSet<>();
    private boolean lookedInVain;
    private long lookedNanos;
    private final AtomicLong accepted = new AtomicLong();
    private final Map<CloseReason, LongAdder> closed = new EnumMap<>(CloseReason.class);
    private volatile boolean leaving;
    private volatile boolean draining;

    /// Without a timer.
    public Connections(NetLimits limits, Clock clock) {
        this(limits, clock, RequestTimer.NONE, () -> 0);
    }

    /// That logs no slow requests.
    public Connections(NetLimits limits, Clock clock, RequestTimer timer, LongSupplier refusedReads) {
        this(limits, clock, timer, new SlowRequests(Duration.ZERO, clock), refusedReads);
    }

    /// @param timer told of every request
    /// @param slow what logs those that take long
    /// @param refusedReads reads so far that found nothing because others hold what is being sent
    public Connections(
            NetLimits limits, Clock clock, RequestTimer timer, SlowRequests slow, LongSupplier refusedReads) {
        this.timer = timer;
        this.slow = slow;
        this.refusedReads = refusedReads;
        this.limits = limits;
        this.clock = clock;
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason, new LongAdder());
        }
    }

    /// The connections of one listener: some places are kept for each, so that a full listener does not close the
    /// others.
    public final class Gate {

        private final boolean asks;
        private int taken;

        private Gate(boolean asks) {
            this.asks = asks;
        }

        private int beyondOwn() {
            return Math.max(0, taken - ownPlaces());
        }
    }

    /// Opens one more listener.
    ///
    /// @param asks whether clients have to say there who they are
    public Gate gate(boolean asks) {
        Gate gate = new Gate(asks);
        synchronized (gates) {
            gates.add(gate);
        }
        return gate;
    }

    /// Places that are kept for each listener: a quarter of all places, in equal parts.
    private int ownPlaces() {
        return Math.max(1, limits.connections() / OWN_PART / gates.size());
    }

    private boolean hasPlace(Gate gate) {
        int own = ownPlaces();
        int beyond = gates.stream().mapToInt(Gate::beyondOwn).sum();
        int all = gates.stream().mapToInt(each -> each.taken).sum();
        boolean common = gates.size() == 1 || beyond < limits.connections() - (long) own * gates.size();
        return all < limits.connections() && (gate.taken < own || common);
    }

    /// Takes a new connection in, or answers null when the server goes down. When all places are taken another
    /// connection gives way. Where none does, the new one may ask for the server's health and nothing else, and
    /// takes one of a few places for that.
    @Nullable
    Connection accept(Channel channel, Gate gate) {
        long id = accepted.incrementAndGet();
        if (draining) {
            count(CloseReason.DRAIN);
            return null;
        }
        String address = ClientAddress.of(channel.remoteAddress());
        List<Connection> leave = new ArrayList<>();
        Connection connection;
        synchronized (gates) {
            if (!hasPlace(gate)) {
                leave.addAll(givingWay(gate, address));
                leave.forEach(this::removed);
            }
            boolean spare = !hasPlace(gate);
            if (spare && spares.size() == SPARE_PLACES) {
                Connection oldest = spares.removeFirst();
                open.remove(oldest);
                count(CloseReason.TOO_MANY);
                leave.add(oldest);
            }
            connection = new Connection(id, channel, this, new Connection.Entry(gate, address, spare, !gate.asks));
            open.add(connection);
            if (spare) {
                spares.add(connection);
            } else {
                gate.taken++;
            }
        }
        leave.forEach(each -> each.close(each.entry().spare() ? CloseReason.TOO_MANY : CloseReason.GAVE_WAY));
        return connection;
    }

    /// The connections that give way to one of an address, several at once so that a flood does not have all looked at
    /// again for each: of the address that has most, if it has no fewer than the new one's, those that were
    /// never asked anything before others, the longest idle first.
    private List<Connection> givingWay(Gate gate, String address) {
        long now = clock.nanos();
        if (now - lookedNanos < LOOK_NANOS && lookedInVain) {
            return List.of();
        }
        lookedNanos = now;
        Map<String, Integer> held = new HashMap<>();
        open.forEach(each -> held.merge(each.entry().address(), each.entry().spare() ? 0 : 1, Integer::sum));
        int own = held.getOrDefault(address, 0);
        boolean others = gate.beyondOwn() > 0 || gate.taken < ownPlaces();
        List<Connection> found = open.stream()
                .filter(each -> !each.entry().spare() && (others || each.entry().gate() == gate))
                .filter(each -> held.getOrDefault(each.entry().address(), 0) >= own && each.givesWay(limits, now))
                .sorted(Comparator.comparingInt((Connection each) ->
                                held.getOrDefault(each.entry().address(), 0))
                        .reversed()
                        .thenComparing(each -> each.requests() > 0)
                        .thenComparingLong(Connection::heardNanos)
                        .thenComparingLong(Connection::id))
                .limit(Math.max(1, limits.connections() / LEAVING_PART))
                .toList();
        lookedInVain = found.isEmpty();
        return found;
    }

    /// Counts a client that was not taken in.
    void refused(CloseReason reason) {
        accepted.incrementAndGet();
        count(reason);
    }

    /// It gives way; the lock is held.
    private void removed(Connection connection) {
        if (open.remove(connection)) {
            connection.entry().gate().taken--;
            count(CloseReason.GAVE_WAY);
        }
    }

    void ended(Connection connection) {
        synchronized (gates) {
            if (!open.remove(connection)) {
                return;
            }
            if (!spares.remove(connection)) {
                connection.entry().gate().taken--;
            }
        }
        count(connection.reason());
    }

    private void count(CloseReason reason) {
        LongAdder adder = closed.get(reason);
        if (adder != null) {
            adder.increment();
        }
    }

    RequestTimer timer() {
        return timer;
    }

    SlowRequests slow() {
        return slow;
    }

    long nanos() {
        return clock.nanos();
    }

    /// Closes connections that have stalled or idled too long.
    public void tick() {
        long now = clock.nanos();
        long refused = refusedReads.getAsLong();
        boolean pressed = refused != refusedBefore;
        refusedBefore = refused;
        for (Connection connection : open) {
            connection.check(limits, now, pressed);
        }
    }

    /// Takes new connections still, but says that it will not for long.
    public void leave() {
        leaving = true;
    }

    /// Whether clients had better go elsewhere.
    public boolean leaving() {
        return leaving || draining;
    }

    /// Takes no new connections; closes each as soon as its request is answered.
    public void drain() {
        draining = true;
        open.forEach(Connection::drain);
    }

    /// Whether no new connections are taken.
    public boolean draining() {
        return draining;
    }

    /// Closes whatever is still open.
    public void closeAll(CloseReason reason) {
        open.forEach(connection -> connection.close(reason));
    }

    /// Connections that are open now.
    public int openCount() {
        return open.size();
    }

    /// Those that are open now, in the order in which they came.
    public List<Connection> all() {
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
}
