package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.Hello;
import io.kvcache.transport.wire.Secret;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// One client: its connections, the namespaces that it has named, and what it holds of the store.
///
/// It lives as long as its first connection, and as long as the client is heard of often enough.
///
/// **Threads.** Any: each connection has one.
final class Session {

    /// More than any client has; a map of them is copied when one is added.
    static final int MAX_NAMESPACES = 1024;

    private final long number;
    private final Secret ticket;
    private final Client client;
    private final long leaseNanos;
    private final Claims<Lease> leases;
    private final Claims<Reservation> reservations;
    private final SessionStaging staging = new SessionStaging();
    private final SessionPins pins = new SessionPins();
    private final Set<Outlet> outlets = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean over = new AtomicBoolean();
    private final Waits waits = new Waits();
    private volatile Names names = new Names(List.of(), Map.of());
    private volatile long heardNanos;

    /// The namespaces by number, from 1 on, and back.
    record Names(List<Namespace> byNumber, Map<Namespace, Integer> numbers) {}

    /// Who began it.
    ///
    /// @param tenant that it said to be
    /// @param secret that it showed to know
    /// @param onlyTenant whose namespaces alone may be used, or null for any
    record Client(String tenant, Secret secret, @Nullable String onlyTenant) {}

    Session(long number, Client client, long leaseNanos, Counters counters) {
        this.number = number;
        this.client = client;
        this.leaseNanos = leaseNanos;
        ticket = Secret.random(Hello.TICKET_BYTES);
        leases = new Claims<>(counters.leases);
        reservations = new Claims<>(counters.reservations);
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
        return client.onlyTenant;
    }

    String tenant() {
        return client.tenant;
    }

    Secret secret() {
        return client.secret;
    }

    Claims<Lease> leases() {
        return leases;
    }

    Claims<Reservation> reservations() {
        return reservations;
    }

    SessionStaging staging() {
        return staging;
    }

    SessionPins pins() {
        return pins;
    }

    Waits waits() {
        return waits;
    }

    Names names() {
        return names;
    }

    /// The number of a namespace, which is given one if it has none; 0 when there are too many.
    synchronized int name(Namespace namespace) {
        Integer known = names.numbers.get(namespace);
        if (known != null) {
            return known;
        }
        if (names.byNumber.size() == MAX_NAMESPACES) {
            return 0;
        }
        List<Namespace> byNumber = new ArrayList<>(names.byNumber);
        byNumber.add(namespace);
        Map<Namespace, Integer> numbers = new HashMap<>(names.numbers);
        numbers.put(namespace, byNumber.size());
        names = new Names(List.copyOf(byNumber), Map.copyOf(numbers));
        return byNumber.size();
    }

    /// The namespace with this number.
    @Nullable
    Namespace namespace(int id) {
        List<Namespace> all = names.byNumber;
        return id < 1 || id > all.size() ? null : all.get(id - 1);
    }

    void heard(long nowNanos) {
        heardNanos = nowNanos;
    }

    /// Whether the client was not heard of for as long as its leases last.
    boolean silent(long nowNanos) {
        return nowNanos - heardNanos > leaseNanos;
    }

    /// Adds a connection; answers false when the session is over.
    boolean join(Outlet outlet) {
        outlets.add(outlet);
        return !over.get();
    }

    void leave(Outlet outlet) {
        outlets.remove(outlet);
    }

    boolean over() {
        return over.get();
    }

    /// Whether the client has begun what it will end by itself: a put, or a get whose blocks are not all
    /// there.
    boolean underWay() {
        return reservations.size() > 0 || leases.any(Lease::arriving);
    }

    /// Ends it with its connections, and gives back what it held; answers false when that was done
    /// before.
    boolean end(CloseReason reason) {
        if (!over.compareAndSet(false, true)) {
            return false;
        }
        leases.expire(Lease::end);
        reservations.expire(Reservation::close);
        staging.end();
        outlets.forEach(outlet -> outlet.close(reason));
        waits.close();
        pins.end();
        return true;
    }
}
