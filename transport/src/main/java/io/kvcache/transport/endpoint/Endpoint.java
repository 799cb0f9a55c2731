package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.endpoint.ChainCache.HeapBudget;
import io.kvcache.transport.endpoint.EndpointConnections.EndpointThreads;
import io.kvcache.transport.endpoint.EndpointContext.GracefulShutdown;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Secret;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.SequencedSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// A cache that other processes use: all their sessions and connections, over any carrier.
///
/// A carrier reports each connection to [#onConnected], and calls [#tick] regularly.
///
/// **Ownership.** The caller keeps the cache, and closes the endpoint first.
///
/// **Threads.** Any.
@SuppressWarnings("exports") // For carriers of ours.
public final class Endpoint implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Endpoint.class.getName());

    private static final long MIN_LEASE_MILLIS = 10;

    /// Most delay until the end of the last waiting request is noticed.
    private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final EndpointContext context;
    private final ExecutorService executor;
    private final LongSupplier nanoClock;
    private final AuthThrottle authThrottle;
    private final ConnectionLimiter connectionLimiter;
    private final Map<Long, ClientSession> sessions = new ConcurrentHashMap<>();
    private final Set<ServerConnection> connections = ConcurrentHashMap.newKeySet();
    private final AtomicLong lastSession = new AtomicLong();
    private volatile boolean closed;

    /// @param nanoClock nanoseconds since some fixed moment
    public Endpoint(KvCache cache, EndpointOptions options, LongSupplier nanoClock) {
        // Virtual threads wait for room and for disks here. No whole blocks go through them, only ranges that were
        // waited for.
        executor = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("kvcache-endpoint-", 0).factory());
        context = new EndpointContext(
                cache,
                options,
                new EndpointStats.Counters(options.listener()),
                executor,
                new GracefulShutdown(),
                new HeapBudget(options.limits().heap().chainBytes()),
                RangeRequestHandler.newBuffers(),
                new LinkCoders(),
                new SnapshotCursors(options, nanoClock));
        this.nanoClock = nanoClock;
        connectionLimiter = new ConnectionLimiter(options.limits().connections());
        authThrottle = new AuthThrottle(nanoClock, context.counters());
    }

    /// Adds a connection, and returns the handler of its frames. When too many are unauthenticated, closes one of
    /// those at once.
    public FrameHandler onConnected(FrameSink frameSink) {
        ServerConnection serverConnection = new ServerConnection(this, frameSink, nowNanos());
        connections.add(serverConnection);
        ServerConnection tooMany = connectionLimiter.addUnauthenticated(serverConnection);
        if (tooMany != null) {
            tooMany.frameSink().close(DisconnectReason.OVER_LIMIT);
        }
        if (closed) {
            frameSink.close(DisconnectReason.SHUTDOWN);
        }
        return serverConnection;
    }

    /// Ends the sessions of silent clients, and connections that do not authenticate in time.
    ///
    /// @return how many
    public int tick() {
        long now = nowNanos();
        int ended = 0;
        for (ClientSession session : sessions.values()) {
            if (session.isExpired(now) && endSession(session, DisconnectReason.SILENT)) {
                context.counters().sessionsExpired.increment();
                ended++;
            }
        }
        context.snapshotCursors().expireIdle(now);
        long handshake = context.options().timeouts().handshake().toNanos();
        for (ServerConnection serverConnection : connections) {
            if (serverConnection.isHandshakeOverdue(now, handshake)) {
                serverConnection.frameSink().close(DisconnectReason.SILENT);
                ended++;
            }
        }
        return ended;
    }

    /// Returns counters and what is open now.
    public EndpointStats stats() {
        return context.counters().stats(connections.size(), sessions.size());
    }

    /// Adds the programs and versions of the clients that use each namespace now; other servers of the cluster are
    /// none.
    ///
    /// @param byNamespace to add to
    public void addClients(Map<Namespace, Set<String>> byNamespace) {
        for (ClientSession session : sessions.values()) {
            if (!session.isServer() && !session.client().isEmpty()) {
                for (Namespace namespace : session.namespaceNumbers().byNumber()) {
                    byNamespace.computeIfAbsent(namespace, _ -> new TreeSet<>()).add(session.client());
                }
            }
        }
    }

    /// Rejects new sessions, leases and reservations from now on. Running work goes on, over existing connections
    /// and those that join a session.
    public void drain() {
        context.gracefulShutdown().begin(nowNanos());
    }

    /// Returns whether all work that had begun before [#drain] has ended: puts with a reservation, tables that
    /// still load, and waiting requests. Poll it.
    ///
    /// @param moving whether bytes of a frame are on their way
    public boolean isDrained(boolean moving) {
        long now = nowNanos();
        if (moving
                || context.counters().waiting.sum() > 0
                || sessions.values().stream().anyMatch(ClientSession::hasWorkInProgress)) {
            context.gracefulShutdown().onActivity(now);
        }
        return context.gracefulShutdown().isIdle(now);
    }

    /// Ends all sessions and connections. Waits five seconds at most for waiting requests, which may use the cache
    /// until they have ended. Stops waiting at an interrupt.
    @Override
    public void close() {
        closed = true;
        sessions.values().forEach(session -> endSession(session, DisconnectReason.SHUTDOWN));
        connections.forEach(each -> each.frameSink().close(DisconnectReason.SHUTDOWN));
        executor.shutdown();
        awaitPendingRequests();
        context.snapshotCursors().close();
    }

    private void awaitPendingRequests() {
        long start = System.nanoTime();
        while (context.counters().waiting.sum() > 0 && !Thread.currentThread().isInterrupted()) {
            if (System.nanoTime() - start > EndpointThreads.MAX_WAIT_NANOS) {
                LOG.log(System.Logger.Level.WARNING, "requests of clients still wait when the endpoint closes");
                return;
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    ConnectionLimiter connectionLimiter() {
        return connectionLimiter;
    }

    AuthThrottle authThrottle() {
        return authThrottle;
    }

    EndpointContext context() {
        return context;
    }

    long nowNanos() {
        return nanoClock.getAsLong();
    }

    /// Begins a session for an authenticated client.
    ClientSession beginSession(Hello hello, EndpointAuthentication endpointAuth, Secret secret) {
        long longest = context.options().timeouts().maxLease().toMillis();
        long asked = hello.leaseMillis() == 0 ? longest : Math.clamp(hello.leaseMillis(), MIN_LEASE_MILLIS, longest);
        String only = endpointAuth.tenantRestriction(hello.tenant());
        long number = lastSession.incrementAndGet();
        ClientSession.ClientIdentity clientIdentity =
                new ClientSession.ClientIdentity(hello.tenant(), secret, only, hello.isServer(), hello.client());
        ClientSession session = new ClientSession(
                number, clientIdentity, TimeUnit.MILLISECONDS.toNanos(Math.min(asked, longest)), context.counters());
        session.recordActivity(nowNanos());
        sessions.put(number, session);
        context.counters().sessionsBegun.increment();
        return session;
    }

    /// Returns the session with this number, for a client that has its ticket.
    @Nullable
    ClientSession findSession(long number, Secret ticket) {
        ClientSession session = sessions.get(number);
        return session != null && session.ticket().equals(ticket) ? session : null;
    }

    /// Removes a connection that has ended, and its session if that has ended too.
    void removeConnection(ServerConnection serverConnection, @Nullable ClientSession session) {
        connections.remove(serverConnection);
        connectionLimiter.remove(serverConnection);
        if (session != null && session.isClosed()) {
            sessions.remove(session.number());
        }
    }

    private boolean endSession(ClientSession session, DisconnectReason reason) {
        sessions.remove(session.number());
        return session.close(reason);
    }

    /// Limits connections: up to a number of authenticated clients, and as many unauthenticated ones.
    ///
    /// A tenant may have one more while it has fewer than are free. So one tenant takes half of them at most, and
    /// every other one finds some. Without separate tenants, clients may take all.
    ///
    /// Unauthenticated connections have a limit of their own. Beyond it, the oldest connection of the address with
    /// most of them is closed. So an attacker that opens connections and sends nothing keeps others out only if it
    /// opens that many during one handshake.
    ///
    /// **Threads.** Any.
    static final class ConnectionLimiter {

        private final int maxConnections;

        private final PerAddressCounts<ServerConnection> unauthenticated = new PerAddressCounts<>();
        private final Map<ServerConnection, String> clients = new HashMap<>();
        private final Map<String, Integer> perTenantCounts = new HashMap<>();

        ConnectionLimiter(int maxConnections) {
            this.maxConnections = maxConnections;
        }

        /// Adds an unauthenticated connection; returns the one to close, or null.
        @Nullable
        ServerConnection addUnauthenticated(ServerConnection connection) {
            return addUnauthenticated(connection, connection.frameSink().peerAddress());
        }

        private synchronized @Nullable ServerConnection addUnauthenticated(ServerConnection connection, String place) {
            unauthenticated.add(connection, place);
            ServerConnection tooMany =
                    unauthenticated.size() <= maxConnections ? null : unauthenticated.oldestOfBusiestAddress();
            if (tooMany != null) {
                unauthenticated.remove(tooMany);
            }
            return tooMany;
        }

        /// Counts a client that has authenticated; returns false if the limit is reached.
        ///
        /// @param tenant of the client, or nothing where tenants are not told apart
        synchronized boolean admit(ServerConnection connection, String tenant) {
            int free = maxConnections - clients.size();
            boolean fair = tenant.isEmpty() || perTenantCounts.getOrDefault(tenant, 0) < free;
            if (free <= 0 || !fair || !unauthenticated.remove(connection)) {
                return false;
            }
            clients.put(connection, tenant);
            perTenantCounts.merge(tenant, 1, Integer::sum);
            return true;
        }

        /// Removes a connection that has ended.
        synchronized void remove(ServerConnection connection) {
            unauthenticated.remove(connection);
            String tenant = clients.remove(connection);
            if (tenant != null) {
                perTenantCounts.merge(tenant, -1, (before, less) -> before + less == 0 ? null : before + less);
            }
        }

        /// Elements by address, and the address that has most. The cost does not grow with their number, except
        /// for a search among the distinct counts, as a flood is counted under a lock that other clients need.
        ///
        /// Not thread-safe.
        ///
        /// @param <T> an element
        static final class PerAddressCounts<T> {

            private final Map<T, String> addressOf = new HashMap<>();

            /// In the order in which they came.
            private final Map<String, SequencedSet<T>> byAddress = new HashMap<>();

            /// Addresses by their number of elements, in the order in which they reached it.
            private final TreeMap<Integer, SequencedSet<String>> bySize = new TreeMap<>();

            int size() {
                return addressOf.size();
            }

            /// Adds an element that is not here.
            void add(T element, String address) {
                addressOf.put(element, address);
                SequencedSet<T> crowd = byAddress.computeIfAbsent(address, first -> new LinkedHashSet<>());
                crowd.add(element);
                updateSize(address, crowd.size() - 1, crowd.size());
            }

            /// Returns whether it was here.
            boolean remove(T element) {
                String address = addressOf.remove(element);
                SequencedSet<T> crowd = address == null ? null : byAddress.get(address);
                if (address == null || crowd == null) {
                    return false;
                }
                crowd.remove(element);
                updateSize(address, crowd.size() + 1, crowd.size());
                if (crowd.isEmpty()) {
                    byAddress.remove(address);
                }
                return true;
            }

            private void updateSize(String address, int before, int now) {
                SequencedSet<String> old = bySize.get(before);
                if (old != null) {
                    old.remove(address);
                    if (old.isEmpty()) {
                        bySize.remove(before);
                    }
                }
                if (now > 0) {
                    bySize.computeIfAbsent(now, first -> new LinkedHashSet<>()).add(address);
                }
            }

            /// Returns the oldest element of the address that has most, or null. Of several such addresses it
            /// takes the one that reached that number first.
            @Nullable
            T oldestOfBusiestAddress() {
                Map.Entry<Integer, SequencedSet<String>> largest = bySize.lastEntry();
                SequencedSet<T> crowd = largest == null
                        ? null
                        : byAddress.get(largest.getValue().getFirst());
                return crowd == null ? null : crowd.getFirst();
            }
        }
    }
}
