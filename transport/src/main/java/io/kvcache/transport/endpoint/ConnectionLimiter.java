package io.kvcache.transport.endpoint;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.SequencedSet;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

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
final class ConnectionLimiter {

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

    /// Elements by address, and the address that has most. The cost does not grow with their number, except for a
    /// search among the distinct counts, as a flood is counted under a lock that other clients need.
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

        /// Returns the oldest element of the address that has most, or null. Of several such addresses it takes
        /// the one that reached that number first.
        @Nullable
        T oldestOfBusiestAddress() {
            Map.Entry<Integer, SequencedSet<String>> largest = bySize.lastEntry();
            SequencedSet<T> crowd =
                    largest == null ? null : byAddress.get(largest.getValue().getFirst());
            return crowd == null ? null : crowd.getFirst();
        }
    }
}
