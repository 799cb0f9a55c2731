package io.kvcache.transport.endpoint;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// How many connections there are: so many of clients that have shown who they are, and as many of
/// strangers.
///
/// A tenant may have one more while it has fewer than are free, so one tenant takes half of them at most and every
/// other
/// finds some. Where tenants are not told apart, clients may take all.
///
/// Strangers take no place of a client. One too many has another give way: of the place that most come from
/// the one that has been there longest. So who opens connections and says nothing keeps others out only if
/// he opens that many in the moment that a handshake takes.
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

    /// A stranger comes; answers who has to give way, or null.
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

    /// A stranger has shown who he is; answers whether there is a place for him.
    ///
    /// @param tenant that he is, or nothing where tenants are not told apart
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

    /// A connection is over.
    synchronized void remove(ServerConnection connection) {
        unauthenticated.remove(connection);
        String tenant = clients.remove(connection);
        if (tenant != null) {
            perTenantCounts.merge(tenant, -1, (before, less) -> before + less == 0 ? null : before + less);
        }
    }
}
