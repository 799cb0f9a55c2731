package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.endpoint.PutRequestHandler.UploadReservation;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.shm.HostRegion;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// One client: its connections, registered namespaces, leases and reservations.
///
/// It ends with its first connection, or when the client is silent for too long.
///
/// **Threads.** Any: each connection has one.
final class ClientSession {

    /// More than any client has. The map is copied when a namespace is added.
    static final int MAX_NAMESPACES = 1024;

    private final long number;
    private final Secret ticket;
    private final ClientIdentity clientIdentity;
    private final long leaseNanos;
    private final HandleTable<Lease> leases;
    private final HandleTable<UploadReservation> reservations;
    private final SessionStaging staging = new SessionStaging();
    private final SessionRegions regions = new SessionRegions();
    private final SessionPins pins = new SessionPins();
    private final Set<FrameSink> outlets = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final PendingRequests pendingRequests = new PendingRequests();
    private volatile NamespaceNumbers namespaceNumbers = new NamespaceNumbers(List.of(), Map.of());
    private volatile long lastActivityNanos;

    /// The namespaces by number, from 1 on, and back.
    record NamespaceNumbers(List<Namespace> byNumber, Map<Namespace, Integer> numbers) {}

    /// Identity of the client that began the session.
    ///
    /// @param tenant that it said to be
    /// @param secret that it showed to know
    /// @param onlyTenant whose namespaces alone may be used, or null for any
    /// @param server whether it is another server of the cluster
    /// @param client program and version, as it says
    record ClientIdentity(
            String tenant, Secret secret, @Nullable String onlyTenant, boolean server, String client) {}

    ClientSession(long number, ClientIdentity clientIdentity, long leaseNanos, EndpointStats.Counters counters) {
        this.number = number;
        this.clientIdentity = clientIdentity;
        this.leaseNanos = leaseNanos;
        ticket = Secret.random(Hello.TICKET_BYTES);
        leases = new HandleTable<>(counters.leases);
        reservations = new HandleTable<>(counters.reservations);
    }

    long number() {
        return number;
    }

    Secret ticket() {
        return ticket;
    }

    long leaseNanos() {
        return leaseNanos;
    }

    @Nullable
    String onlyTenant() {
        return clientIdentity.onlyTenant;
    }

    String tenant() {
        return clientIdentity.tenant;
    }

    /// Returns whether the client is another server of the cluster.
    boolean isServer() {
        return clientIdentity.server;
    }

    /// Returns the client's program and version, as it says.
    String client() {
        return clientIdentity.client;
    }

    Secret secret() {
        return clientIdentity.secret;
    }

    HandleTable<Lease> leases() {
        return leases;
    }

    HandleTable<UploadReservation> reservations() {
        return reservations;
    }

    SessionStaging staging() {
        return staging;
    }

    SessionRegions regions() {
        return regions;
    }

    SessionPins pins() {
        return pins;
    }

    PendingRequests pendingRequests() {
        return pendingRequests;
    }

    NamespaceNumbers namespaceNumbers() {
        return namespaceNumbers;
    }

    /// Returns the number of a namespace, and assigns one if it has none; 0 when there are too many.
    synchronized int registerNamespace(Namespace namespace) {
        Integer known = namespaceNumbers.numbers.get(namespace);
        if (known != null) {
            return known;
        }
        if (namespaceNumbers.byNumber.size() == MAX_NAMESPACES) {
            return 0;
        }
        List<Namespace> byNumber = new ArrayList<>(namespaceNumbers.byNumber);
        byNumber.add(namespace);
        Map<Namespace, Integer> numbers = new HashMap<>(namespaceNumbers.numbers);
        numbers.put(namespace, byNumber.size());
        namespaceNumbers = new NamespaceNumbers(List.copyOf(byNumber), Map.copyOf(numbers));
        return byNumber.size();
    }

    /// Returns the namespace with this number.
    @Nullable
    Namespace namespace(int id) {
        List<Namespace> all = namespaceNumbers.byNumber;
        return id < 1 || id > all.size() ? null : all.get(id - 1);
    }

    /// Reads `u32 namespace`, which the session must have registered.
    Namespace requireNamespace(BodyReader body) throws ProtocolException {
        return requireNamespace(body.count("namespace"));
    }

    /// Returns the namespace with this number, which the session must have registered.
    Namespace requireNamespace(int id) throws ProtocolException {
        Namespace namespace = namespace(id);
        if (namespace == null) {
            throw new ProtocolException("namespace = %s; allowed: those that REGISTER has answered".formatted(id));
        }
        return namespace;
    }

    /// Returns whether the client may see everything in this memory.
    boolean mayMap(SharedMemory memory) {
        String only = onlyTenant();
        return only == null || memory.mayBeMappedBy(only);
    }

    void recordActivity(long nowNanos) {
        lastActivityNanos = nowNanos;
    }

    /// Returns whether the client was silent for longer than its leases last.
    boolean isExpired(long nowNanos) {
        return nowNanos - lastActivityNanos > leaseNanos;
    }

    /// Adds a connection; returns false if the session has ended.
    boolean addConnection(FrameSink frameSink) {
        outlets.add(frameSink);
        return !closed.get();
    }

    void removeConnection(FrameSink frameSink) {
        outlets.remove(frameSink);
    }

    boolean isClosed() {
        return closed.get();
    }

    /// Returns whether the client has unfinished work: a put, or a get whose blocks are still arriving.
    boolean hasWorkInProgress() {
        return reservations.size() > 0 || leases.anyMatch(Lease::isLoading);
    }

    /// Ends the session and its connections, and releases everything that it held. Returns false if that was done
    /// before.
    boolean close(DisconnectReason reason) {
        if (!closed.compareAndSet(false, true)) {
            return false;
        }
        leases.expire(Lease::end);
        reservations.expire(UploadReservation::close);
        staging.close();
        regions.close();
        outlets.forEach(frameSink -> frameSink.close(reason));
        pendingRequests.close();
        pins.end();
        return true;
    }

    /// Waiting requests of one session, up to a limit. The end of the session interrupts them, which ends waits
    /// for room, for a flush or for anything else that can be interrupted.
    ///
    /// **Threads.** Any.
    static final class PendingRequests {

        private final AtomicInteger count = new AtomicInteger();
        private final Set<Thread> threads = ConcurrentHashMap.newKeySet();
        private volatile boolean closed;

        /// Adds a waiting request, until [#end], unless the limit is reached.
        boolean tryBegin(int most) {
            if (count.incrementAndGet() <= most) {
                return true;
            }
            count.decrementAndGet();
            return false;
        }

        /// Removes a waiting request.
        void end() {
            count.decrementAndGet();
        }

        /// Runs a request that waits on this thread, unless the session has ended.
        void run(Runnable work) {
            Thread self = Thread.currentThread();
            threads.add(self);
            try {
                if (!closed) {
                    work.run();
                }
            } finally {
                threads.remove(self);
            }
        }

        /// The session is over.
        void close() {
            closed = true;
            threads.forEach(Thread::interrupt);
        }
    }

    /// Staging memory that a session's client writes into. It is created at the client's request, stays the same
    /// from then on, and ends with the session.
    ///
    /// **Threads.** Any.
    static final class SessionStaging {

        private volatile @Nullable StagingArea area;
        private boolean closed;

        /// Returns the area, or null if there is none.
        @Nullable
        StagingArea area() {
            return area;
        }

        /// Returns the area, and creates it if there is none.
        synchronized StagingArea areaOrCreate(Supplier<StagingArea> make) throws RequestException {
            if (closed) {
                throw new RequestException(Status.GONE, "the session is over");
            }
            StagingArea there = area;
            if (there == null) {
                there = make.get();
                area = there;
            }
            return there;
        }

        /// Releases it.
        synchronized void close() {
            closed = true;
            StagingArea there = area;
            if (there != null) {
                there.close();
            }
        }
    }

    /// Memory of the client's own that it has registered, by number. It ends with the session.
    ///
    /// **Threads.** Any.
    static final class SessionRegions {

        /// More than an engine has pools.
        static final int MAX_REGIONS = 64;

        private final Map<Integer, HostRegion> regions = new HashMap<>();
        private int lastNumber;
        private boolean closed;

        /// Adds a region, and returns its number. Closes it when it cannot be added.
        synchronized int add(HostRegion region) throws RequestException {
            if (closed || regions.size() == MAX_REGIONS) {
                region.close();
                throw closed
                        ? new RequestException(Status.GONE, "the session is over")
                        : new RequestException(
                                Status.BUSY, "%s regions are registered; allowed: %1$s".formatted(MAX_REGIONS));
            }
            lastNumber++;
            regions.put(lastNumber, region);
            return lastNumber;
        }

        /// Returns a region for one copy, whose caller releases it, or null when there is none of this number.
        synchronized @Nullable HostRegion retain(int number) {
            HostRegion region = regions.get(number);
            return region != null && region.retain() ? region : null;
        }

        /// Closes a region. Returns false when there is none of this number.
        synchronized boolean remove(int number) {
            HostRegion region = regions.remove(number);
            if (region != null) {
                region.close();
            }
            return region != null;
        }

        /// Closes all of them.
        synchronized void close() {
            closed = true;
            regions.values().forEach(HostRegion::close);
            regions.clear();
        }
    }

    /// Handles of one kind that a session holds, by number. Once the table is barred it accepts no more: a caller
    /// that comes too late gives its claim back itself.
    ///
    /// **Threads.** Any.
    static final class HandleTable<T> {

        /// Stands for no handle.
        static final long NONE = 0;

        private final Map<Long, T> handles = new ConcurrentHashMap<>();
        private final AtomicLong lastNumber = new AtomicLong();
        private final EndpointStats.Counters.HandleCounters counters;
        private volatile boolean closed;

        HandleTable(EndpointStats.Counters.HandleCounters counters) {
            this.counters = counters;
        }

        /// Adds a claim and returns its number, or [#NONE] if the session has ended.
        long grant(T resource) {
            long number = lastNumber.incrementAndGet();
            counters.granted.increment();
            handles.put(number, resource);
            if (closed && handles.remove(number) != null) {
                counters.expired.increment();
                return NONE;
            }
            return number;
        }

        /// Returns the claim with this number.
        @Nullable
        T find(long number) {
            return handles.get(number);
        }

        /// Removes a claim at the request of its client. Only one caller gets it.
        @Nullable
        T remove(long number) {
            return remove(number, counters.ended);
        }

        /// Removes a claim that its client cannot release.
        @Nullable
        T expire(long number) {
            return remove(number, counters.expired);
        }

        private @Nullable T remove(long number, LongAdder counter) {
            T taken = handles.remove(number);
            if (taken != null) {
                counter.increment();
            }
            return taken;
        }

        boolean anyMatch(Predicate<T> condition) {
            return handles.values().stream().anyMatch(condition);
        }

        int size() {
            return handles.size();
        }

        /// Bars the table, and passes on all claims.
        void expire(Consumer<T> back) {
            closed = true;
            for (Long number : List.copyOf(handles.keySet())) {
                T taken = expire(number);
                if (taken != null) {
                    back.accept(taken);
                }
            }
        }
    }
}
