package io.kvcache.server.net;

import io.kvcache.core.Clock;
import io.netty.channel.Channel;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// All connections of a server: how many there may be, which of them stall, why they ended.
///
/// **Threads.** Any; [#tick] one at a time.
public final class Connections {

    private final NetLimits limits;
    private final Clock clock;
    private final RequestTimer timer;
    private final LongSupplier refusedReads;
    private long refusedBefore;
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();
    private final AtomicInteger count = new AtomicInteger();
    private final AtomicLong accepted = new AtomicLong();
    private final Map<CloseReason, LongAdder> closed = new EnumMap<>(CloseReason.class);
    private volatile boolean draining;

    /// Without a timer.
    public Connections(NetLimits limits, Clock clock) {
        this(limits, clock, RequestTimer.NONE, () -> 0);
    }

    /// @param timer told of every request
    /// @param refusedReads reads so far that found nothing because others hold what is being sent
    public Connections(NetLimits limits, Clock clock, RequestTimer timer, LongSupplier refusedReads) {
        this.timer = timer;
        this.refusedReads = refusedReads;
        this.limits = limits;
        this.clock = clock;
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason, new LongAdder());
        }
    }

    /// Takes a new connection in, or answers null when there are too many or the server goes down.
    @Nullable
    Connection accept(Channel channel) {
        long id = accepted.incrementAndGet();
        if (draining || count.incrementAndGet() > limits.connections()) {
            if (!draining) {
                count.decrementAndGet();
            }
            count(draining ? CloseReason.DRAIN : CloseReason.TOO_MANY);
            return null;
        }
        Connection connection = new Connection(id, channel, this);
        open.add(connection);
        return connection;
    }

    /// Counts a client that was not taken in.
    void refused(CloseReason reason) {
        accepted.incrementAndGet();
        count(reason);
    }

    void ended(Connection connection) {
        if (open.remove(connection)) {
            count.decrementAndGet();
            count(connection.reason());
        }
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
