package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.Hello;
import io.kvcache.transport.wire.Secret;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// A cache that other processes may use: the sessions and connections of all of them, over whatever they
/// come.
///
/// What carries bytes tells of each connection by [#connected], and lets time pass by [#tick].
///
/// **Ownership.** The cache stays its caller's, who closes the endpoint first.
///
/// **Threads.** Any.
public final class Endpoint implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Endpoint.class.getName());

    private static final long SHORTEST_LEASE_MILLIS = 10;

    /// How late it may be noticed at the end that nobody waits.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final Service service;
    private final ExecutorService later;
    private final LongSupplier nanoClock;
    private final Tries tries;
    private final Admission admission;
    private final Map<Long, Session> sessions = new ConcurrentHashMap<>();
    private final Set<Conversation> conversations = ConcurrentHashMap.newKeySet();
    private final AtomicLong lastSession = new AtomicLong();
    private volatile boolean closed;

    /// @param nanoClock nanoseconds since some fixed moment
    public Endpoint(KvCache cache, EndpointOptions options, LongSupplier nanoClock) {
        // Virtual threads wait for room and for disks here; bytes of blocks never go through them.
        later = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("kvcache-endpoint-", 0).factory());
        Service.Common common = new Service.Common(
                new HeapShare(options.most().heap().chainBytes()), new Snapshots(options, nanoClock));
        service = new Service(cache, options, new Counters(), later, new Draining(), common);
        this.nanoClock = nanoClock;
        admission = new Admission(options.most().connections());
        tries = new Tries(nanoClock, service.counters());
    }

    /// Hears of a connection: its frames go to what is answered. When there are too many whose clients have
    /// not said who they are, one of these is closed at once.
    public FrameHandler connected(Outlet outlet) {
        Conversation conversation = new Conversation(this, outlet, nowNanos());
        conversations.add(conversation);
        Conversation tooMany = admission.come(conversation);
        if (tooMany != null) {
            tooMany.outlet().close(CloseReason.OVER_LIMIT);
        }
        if (closed) {
            outlet.close(CloseReason.SHUTDOWN);
        }
        return conversation;
    }

    /// Ends the sessions whose clients are not heard of, and connections that do not say who they are.
    ///
    /// @return how many
    public int tick() {
        long now = nowNanos();
        int ended = 0;
        for (Session session : sessions.values()) {
            if (session.silent(now) && end(session, CloseReason.SILENT)) {
                service.counters().sessionsExpired.increment();
                ended++;
            }
        }
        service.common().snapshots().tick(now);
        long handshake = service.options().times().handshake().toNanos();
        for (Conversation conversation : conversations) {
            if (conversation.late(now, handshake)) {
                conversation.outlet().close(CloseReason.SILENT);
                ended++;
            }
        }
        return ended;
    }

    /// What it serves and has served.
    public EndpointStats stats() {
        return service.counters().stats(conversations.size(), sessions.size());
    }

    /// Begins nothing new any more: sessions, leases and reservations are refused. What has begun goes on,
    /// over connections that there are or that join.
    public void drain() {
        service.draining().begin(nowNanos());
    }

    /// Whether all that had begun has ended, since [#drain]: no put that has its room, no table that blocks
    /// are still coming for, no request that waits. It is to be asked again and again.
    ///
    /// @param moving whether bytes of a frame are on their way
    public boolean drained(boolean moving) {
        long now = nowNanos();
        if (moving
                || service.counters().waiting.sum() > 0
                || sessions.values().stream().anyMatch(Session::underWay)) {
            service.draining().busy(now);
        }
        return service.draining().quiet(now);
    }

    /// Ends all sessions and connections, and waits for requests that wait for something, five seconds at
    /// most: until they have ended they may use the cache. Stops at an interrupt.
    @Override
    public void close() {
        closed = true;
        sessions.values().forEach(session -> end(session, CloseReason.SHUTDOWN));
        conversations.forEach(each -> each.outlet().close(CloseReason.SHUTDOWN));
        later.shutdown();
        awaitWaiting();
        service.common().snapshots().close();
    }

    private void awaitWaiting() {
        long start = System.nanoTime();
        while (service.counters().waiting.sum() > 0 && !Thread.currentThread().isInterrupted()) {
            if (System.nanoTime() - start > EndpointThreads.LONGEST_NANOS) {
                LOG.log(System.Logger.Level.WARNING, "requests of clients still wait when the endpoint closes");
                return;
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    Admission admission() {
        return admission;
    }

    Tries tries() {
        return tries;
    }

    Service service() {
        return service;
    }

    long nowNanos() {
        return nanoClock.getAsLong();
    }

    /// A session for a client that has shown who it is.
    Session begin(Hello hello, Access access, Secret secret) {
        long longest = service.options().times().longestLease().toMillis();
        long asked =
                hello.leaseMillis() == 0 ? longest : Math.clamp(hello.leaseMillis(), SHORTEST_LEASE_MILLIS, longest);
        String only = access.limit(hello.tenant());
        long number = lastSession.incrementAndGet();
        Session.Client client = new Session.Client(hello.tenant(), secret, only);
        Session session = new Session(
                number, client, TimeUnit.MILLISECONDS.toNanos(Math.min(asked, longest)), service.counters());
        session.heard(nowNanos());
        sessions.put(number, session);
        service.counters().sessionsBegun.increment();
        return session;
    }

    /// The session with this number, for who has its ticket.
    @Nullable
    Session find(long number, Secret ticket) {
        Session session = sessions.get(number);
        return session != null && session.ticket().equals(ticket) ? session : null;
    }

    /// A connection is over, and its session with it if that has ended.
    void gone(Conversation conversation, @Nullable Session session) {
        conversations.remove(conversation);
        admission.gone(conversation);
        if (session != null && session.over()) {
            sessions.remove(session.number());
        }
    }

    private boolean end(Session session, CloseReason reason) {
        sessions.remove(session.number());
        return session.end(reason);
    }
}
